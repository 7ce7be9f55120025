//go:build linux

package nic

import (
	"testing"
	"testing/fstest"
)

// FuzzRecorded writes anything into the files of a recorded tree that are parsed.
func FuzzRecorded(f *testing.F) {
	f.Add(string(recordedTree["proc/interrupts"].Data), "DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:3b:00.0\n", "up", "1500")
	f.Add("99:", "=", "", "-")
	f.Add(": x\n 99", "PCI_SLOT_NAME=..", "down", "99999999999999999999")
	f.Fuzz(func(t *testing.T, interrupts, uevent, state, mtu string) {
		root := fstest.MapFS{"sys/class/net/eth1/device/msi_irqs/99": {}}
		for name, text := range map[string]string{
			"proc/interrupts": interrupts, "sys/class/net/eth1/device/uevent": uevent, "sys/class/net/eth1/operstate": state, "sys/class/net/eth1/mtu": mtu,
		} {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		s, err := Recorded("eth1", root)
		if err != nil || s.Driver == nil || s.Unknown == nil || s.Unsupported == nil {
			t.Errorf("%+v, %v", s, err)
		}
		if s.Carrier && !s.Up {
			t.Errorf("a carrier without being up: %+v", s)
		}
	})
}
