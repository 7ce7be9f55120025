//go:build linux

package xsk_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest/contract"
)

// TestLongestPacketBehindHeadroom sends what just fits a frame whose first bytes are the caller's.
func TestLongestPacketBehindHeadroom(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{MTU: 3000})
	cfg := xsk.Config{Headroom: 128}
	contract.LongestPacket(t, newSide(t, pair.A, cfg), newSide(t, pair.B, cfg))
}

// TestOpenClose opens and closes one queue again and again, with traffic: nothing stays open, mapped or busy.
func TestOpenClose(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	b := newSide(t, pair.B, xsk.Config{})
	cycle := func(number uint64) {
		a := &side{End: pair.A}
		if err := pair.A.Do(func() (err error) {
			a.Queue, err = xsk.Open(xsk.Config{Interface: pair.A.Index, Checked: true})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		a.Send(t, pair.B, number, 64)
		a.Drain(t)
		batch := make([]frame.Desc, 1)
		b.Queue.Release(b.Receive(t, batch))
		a.Close(t)
		if err := a.Queue.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
	}
	cycle(0)
	descriptors, mappings := countDescriptors(t), countMappings(t)
	for i := range 100 {
		cycle(uint64(i))
	}
	if got := countDescriptors(t); got != descriptors {
		t.Errorf("%d descriptors after 100 cycles, %d before", got, descriptors)
	}
	if got := countMappings(t); got != mappings {
		t.Errorf("%d socket mappings after 100 cycles, %d before", got, mappings)
	}
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func countMappings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(maps, []byte("socket:["))
}

// TestOpenErrors checks that what cannot be opened says why and what to do, and leaves nothing open.
func TestOpenErrors(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	holder := newSide(t, pair.A, xsk.Config{})
	descriptors, mappings := countDescriptors(t), countMappings(t)
	for _, test := range []struct {
		name   string
		end    *lab.End
		cfg    xsk.Config
		target error
		want   string
	}{
		{"second owner", pair.A, xsk.Config{Interface: pair.A.Index}, xsk.ErrQueueBusy, "waited 3s"},
		{"no such queue", pair.A, xsk.Config{Interface: pair.A.Index, QueueID: 5}, nil, "ethtool -l"},
		{"no zero-copy", pair.B, xsk.Config{Interface: pair.B.Index, Mode: xsk.ModeZeroCopy}, nil, "use copy mode"},
		{"no such interface", pair.A, xsk.Config{Interface: 4242}, nil, "no such interface"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.end.Do(func() error {
				_, err := xsk.Open(test.cfg)
				return err
			})
			if err == nil || test.target != nil && !errors.Is(err, test.target) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
	if got := countDescriptors(t); got != descriptors {
		t.Errorf("%d descriptors after the errors, %d before", got, descriptors)
	}
	if got := countMappings(t); got != mappings {
		t.Errorf("%d socket mappings after the errors, %d before", got, mappings)
	}
	if err := holder.Queue.Audit(); err != nil {
		t.Error(err)
	}
}
