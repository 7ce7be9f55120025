//go:build linux

package nic_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/hw/nic"
)

// TestProbe follows an interface through what may change about it.
func TestProbe(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 2})
	var probe *nic.Probe
	labtest.Must(t, pair.A.Do(func() (err error) { probe, err = nic.NewProbe(pair.A.Interface); return err }))
	defer probe.Close()
	look := func() nic.State {
		t.Helper()
		s, err := probe.Look()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := look(); s.Index != pair.A.Index || !s.Up || s.MTU != 1500 || s.Channels.Receive() != 4 || s.Channels.Transmit() != 2 || s.Channels.ReceiveMax() != 4 {
		t.Errorf("%+v, want index %d", s, pair.A.Index)
	}
	labtest.Must(t, pair.A.SetMTU(1200))
	labtest.Must(t, pair.A.SetQueues(3))
	if s := look(); s.MTU != 1200 || s.Channels.Receive() != 3 || s.Channels.ReceiveMax() != 4 {
		t.Errorf("%+v", s)
	}
	if objects := testing.AllocsPerRun(100, func() { look() }); objects != 0 {
		t.Errorf("a look allocates %v objects", objects)
	}
	labtest.Must(t, pair.Cut())
	if _, err := probe.Look(); !errors.Is(err, unix.ENODEV) {
		t.Errorf("an interface that is gone: %v", err)
	}
}

// TestChannelsOfWhat has none.
func TestChannelsOfWhat(t *testing.T) {
	if c, err := nic.ChannelsOf("lo"); err != nil || c.Receive() != 1 || c.Transmit() != 1 {
		t.Errorf("loopback: %+v, %v", c, err)
	}
	for _, name := range []string{"nosuch0", "a-name-that-is-too-long"} {
		if _, err := nic.ChannelsOf(name); !errors.Is(err, unix.ENODEV) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := nic.NewProbe("a-name-that-is-too-long"); err == nil {
		t.Error("a name that no interface can have was taken")
	}
}
