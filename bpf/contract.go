//go:build linux

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// mapContract is the form of a map that this package and a program share; see CONTRACT.md.
type mapContract struct {
	name       string
	kind       ebpf.MapType
	key, value uint32 // bytes
}

// The maps of the contract.
var (
	contractXsks     = mapContract{steerMapXsks, ebpf.XSKMap, 4, 4}
	contractServices = mapContract{steerMapServices, ebpf.Hash, 20, 4}
	contractVerdicts = mapContract{steerMapVerdicts, ebpf.PerCPUArray, 4, 8}
	contractOwners   = mapContract{mapOwners, ebpf.Hash, 4, 20}
)

// fits says how a map departs from its form.
func (c mapContract) fits(m *ebpf.Map) error {
	return c.check(m.Type(), m.KeySize(), m.ValueSize())
}

func (c mapContract) check(kind ebpf.MapType, key, value uint32) error {
	if kind != c.kind || key != c.key || value != c.value {
		return fmt.Errorf("map %s is a %v with keys of %d and values of %d bytes, it has to be a %v with keys of %d and values of %d",
			c.name, kind, key, value, c.kind, c.key, c.value)
	}
	return nil
}
