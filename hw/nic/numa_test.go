//go:build linux

package nic

import (
	"testing"
	"testing/fstest"
)

func TestNUMANode(t *testing.T) {
	recorded := tree{fstest.MapFS{
		"sys/bus/pci/devices/0000:3b:00.0/numa_node": {Data: []byte("1\n")},
		"sys/bus/pci/devices/0000:3b:00.1/numa_node": {Data: []byte("-1\n")},
		"sys/bus/pci/devices/0000:3b:00.2/numa_node": {Data: []byte("near\n")},
	}}
	for bus, want := range map[string]int{
		"0000:3b:00.0": 1, "0000:3b:00.1": -1, "0000:3b:00.2": -1, "0000:3b:00.3": -1, "": -1, "../x": -1,
	} {
		if got := recorded.numaNode(bus); got != want {
			t.Errorf("%q: %d, want %d", bus, got, want)
		}
	}
	for _, name := range []string{"lo", "nosuch0"} { // neither has a device
		if got := NUMANode(name); got != -1 {
			t.Errorf("%s: %d", name, got)
		}
	}
}
