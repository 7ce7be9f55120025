package main

import (
	"fmt"
	"net"
	"strings"
)

// interfaceNames are those of this network namespace.
func interfaceNames() ([]string, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("listing the interfaces: %w", err)
	}
	names := make([]string, len(devices))
	for i, device := range devices {
		names[i] = device.Name
	}
	return names, nil
}

// checkInterface finds a misspelt name, and says which there are.
func checkInterface(name string) error {
	names, err := interfaceNames()
	if err != nil {
		return err
	}
	for _, known := range names {
		if known == name {
			return nil
		}
	}
	if len(names) == 0 {
		return usageError("no interface %s: this network namespace has none at all", name)
	}
	return usageError("no interface %s in this network namespace: there are %s", name, strings.Join(names, ", "))
}
