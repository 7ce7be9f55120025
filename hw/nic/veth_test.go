//go:build linux

package nic_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/hw/nic"
)

// TestReadVeth reads an interface of which much is known, and whose namespace sysfs does not show.
func TestReadVeth(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 3, TxQueueCount: 2, MTU: 1400})
	var s *nic.Status
	if err := pair.A.Do(func() (err error) { s, err = nic.Read(pair.A.Interface, os.DirFS("/")); return err }); err != nil {
		t.Fatal(err)
	}
	if s.Index != pair.A.Index || s.HardwareAddress != pair.A.Hardware.String() || s.MTUBytes != 1400 || !s.Up || !s.Carrier {
		t.Errorf("%+v", s)
	}
	if s.Driver == nil || s.Driver.Name != "veth" || s.Driver.Bus != "" {
		t.Errorf("driver %+v", s.Driver)
	}
	if s.Queues == nil || s.Queues.Rx != 3 || s.Queues.Tx != 2 {
		t.Errorf("queues %+v", s.Queues)
	}
	if o := s.Offloads[nic.OffloadTxChecksum]; o.On || !o.Changeable { // the lab switched it off
		t.Errorf("tx checksum %v", o)
	}
	if o, known := s.Offloads[nic.OffloadLRO]; !known || o.On {
		t.Errorf("LRO %v, %v", o, known)
	}
	for _, part := range []string{"interrupts", "local_cpus", "numa_node", "rss", "rule_count"} {
		if !slices.Contains(s.Unsupported, part) {
			t.Errorf("%s is not said to be unsupported: %v", part, s.Unsupported)
		}
	}
	// Linux 6.3 and later say what XDP can do.
	if s.XDP != nil && (!slices.Contains(s.XDP.Features, nic.XDPRedirect) || slices.Contains(s.XDP.Features, nic.XDPZeroCopy)) {
		t.Errorf("XDP %+v", s.XDP)
	}
	down := func() error {
		link, err := netlink.LinkByName(pair.A.Interface)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetDown(link); err != nil {
			return err
		}
		s, err = nic.Read(pair.A.Interface, os.DirFS("/"))
		return err
	}
	if err := pair.A.Do(down); err != nil || s.Up || s.Carrier {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := nic.Read("nosuch0", os.DirFS("/")); err == nil {
		t.Error("an interface that does not exist was read")
	}
}

// TestVethHasNoRules goes to the kernel: veth has no table, and says so for each way to ask.
func TestVethHasNoRules(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	rules := []nic.Rule{{Port: 7700, Queue: 0}}
	for name, ask := range map[string]func() ([]nic.Step, error){
		"steer":        func() ([]nic.Step, error) { return nic.Steer(pair.A.Interface, rules) },
		"unsteer":      func() ([]nic.Step, error) { return nic.Unsteer(pair.A.Interface, rules) },
		"plan steer":   func() ([]nic.Step, error) { return nic.PlanSteer(pair.A.Interface, rules) },
		"plan unsteer": func() ([]nic.Step, error) { return nic.PlanUnsteer(pair.A.Interface, rules) },
		// What the plan stops at, the kernel refuses as well: the bytes of the request arrive.
		"insert": func() ([]nic.Step, error) {
			return nil, nic.Insert(pair.A.Interface, rules[0])
		},
	} {
		var steps []nic.Step
		err := pair.A.Do(func() (err error) { steps, err = ask(); return err })
		if !errors.Is(err, nic.ErrNoRules) || !errors.Is(err, unix.EOPNOTSUPP) || !strings.Contains(err.Error(), "every queue") {
			t.Errorf("%s: %v", name, err)
		}
		if want := map[bool]int{true: 1}[name == "plan steer"]; len(steps) != want {
			t.Errorf("%s: %+v", name, steps)
		}
	}
}
