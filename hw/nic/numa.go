//go:build linux

package nic

import (
	"os"
	"path"
)

// NUMANode is the node that an interface's device is near to; -1 if it is near to none, has no device, or does not say. It takes two system
// calls, and asks for no right.
func NUMANode(name string) int {
	driver, err := driverOf(name)
	if err != nil {
		return -1
	}
	return tree{os.DirFS("/")}.numaNode(driver.Bus)
}

// numaNode goes by the bus address: sysfs was perhaps mounted in another network namespace, with an interface of the same name.
func (t tree) numaNode(bus string) int {
	if bus == "" {
		return -1
	}
	node, ok := t.number(path.Join("sys/bus/pci/devices", bus, "numa_node"))
	if !ok {
		return -1
	}
	return node
}
