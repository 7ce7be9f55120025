//go:build linux

package xdpport_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// pin attaches a program to an end, pins it, and gives up its descriptors.
func pin(t *testing.T, end *lab.End) (dir string) { return pinAs(t, end, bpf.ModeNative) }

func pinAs(t *testing.T, end *lab.End, mode bpf.Mode) (dir string) {
	t.Helper()
	dir = filepath.Join(lab.DescriptorPath(labtest.BPFFS(t).Fd()), "pins")
	program, err := bpf.Load(bpf.Options{})
	labtest.Must(t, err)
	if err := end.Do(func() error { _, err := program.Attach(end.Index, mode); return err }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(program.Pin(dir, 0), program.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTwoPortsOnOneInterface share a program, each with a service and queues of its own. A flow of the other end stays on the queue that
// it is sent from, so each service's packets are sent from a queue of its port.
func TestTwoPortsOnOneInterface(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	labtest.Introduce(t, pair)
	here, there := pin(t, pair.A), pin(t, pair.B)
	low := open(t, pair.A, xdpport.Config{Port: 7700, Queue: 0, Queues: 2, PinPath: here})
	high := open(t, pair.A, xdpport.Config{Port: 7701, Queue: 2, Queues: 2, PinPath: here})
	fromLow := open(t, pair.B, xdpport.Config{Queue: 1, Queues: 1, PinPath: there})
	fromHigh := open(t, pair.B, xdpport.Config{Queue: 2, Queues: 1, PinPath: there})
	expect(t, fromLow, low, []byte("to the low queues"))
	expect(t, fromHigh, high, []byte("to the high queues"))
	expect(t, low, fromLow, []byte("back from the low queues"))
	if mode := high.Mode(); mode != "AF_XDP on veth0 queues 2-3, native XDP, copy mode (no zero-copy there)" {
		t.Errorf("mode %q", mode)
	}
	for name, p := range map[string]*xdpport.Port{"low": low, "high": high} {
		if s := p.Stats(); s.Received == 0 || s.PassedOn != 0 {
			t.Errorf("%s: received %d, %d of them through the kernel", name, s.Received, s.PassedOn)
		}
	}
	_, err := tryOpen(pair.A, xdpport.Config{Port: 7702, Queue: 1, Queues: 1, PinPath: here})
	if taken, ok := errors.AsType[*bpf.QueueError](err); !ok || !errors.Is(err, xsk.ErrQueueBusy) || taken.Queue != 1 ||
		!strings.Contains(err.Error(), fmt.Sprintf("queue 1 has a socket of process %d (", os.Getpid())) {
		t.Errorf("a queue that is taken: %v", err)
	}
	if err := low.Close(); err != nil {
		t.Fatal(err)
	}
	if status := inspect(t, pair.A); !status.Attached {
		t.Error("the program went with one of those who share it")
	}
	expect(t, fromHigh, high, []byte("the other one stays"))
	again := open(t, pair.A, xdpport.Config{Port: 7700, Queue: 0, Queues: 2, PinPath: here})
	expect(t, fromLow, again, []byte("and the first comes again"))
}

// TestShareNothing shares programs that are not there.
func TestShareNothing(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	dir, fds := pin(t, pair.A), descriptors(t)
	if _, err := tryOpen(pair.B, xdpport.Config{PinPath: dir}); !errors.Is(err, bpf.ErrNotAttached) {
		t.Errorf("it is attached elsewhere: %v", err)
	}
	if _, err := tryOpen(pair.A, xdpport.Config{PinPath: dir + "-none"}); !errors.Is(err, bpf.ErrNoPins) {
		t.Errorf("no pins: %v", err)
	}
	_, err := tryOpen(pair.A, xdpport.Config{})
	if held, ok := errors.AsType[*bpf.HeldError](err); !ok || held.Name != "stillwater_xdp" {
		t.Errorf("a program of its own where one is pinned: %v", err)
	}
	if after := descriptors(t); after != fds {
		t.Errorf("%d descriptors, then %d", fds, after)
	}
	// What is pinned can still be shared, on the address that was asked for.
	p := open(t, pair.A, xdpport.Config{PinPath: dir, Address: netip.MustParseAddr("10.77.0.1")})
	expect(t, open(t, pair.B, xdpport.Config{}), p, []byte("x"))
}

// TestShareInAMode: whoever attached the program chose its mode. Auto takes what it finds, and a mode that is named must be that.
func TestShareInAMode(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	dirs := map[*lab.End]string{pair.A: pinAs(t, pair.A, bpf.ModeGeneric), pair.B: pin(t, pair.B)}
	fds := descriptors(t)
	for _, c := range []struct {
		end  *lab.End
		mode xdpport.Mode
		is   string
	}{{pair.A, xdpport.ModeCopy, "generic"}, {pair.B, xdpport.ModeGeneric, "native"}} {
		_, err := tryOpen(c.end, xdpport.Config{PinPath: dirs[c.end], Mode: c.mode})
		if !errors.Is(err, xdpport.ErrMode) || !strings.Contains(err.Error(), "in "+c.is+" mode") || !strings.Contains(err.Error(), "--mode") {
			t.Errorf("%v of a program that is %s: %v", c.mode, c.is, err)
		}
	}
	if after := descriptors(t); after != fds {
		t.Errorf("%d descriptors, then %d", fds, after)
	}
	for _, modes := range [][2]xdpport.Mode{{xdpport.ModeAuto, xdpport.ModeAuto}, {xdpport.ModeGeneric, xdpport.ModeCopy}} {
		a := open(t, pair.A, xdpport.Config{PinPath: dirs[pair.A], Mode: modes[0]})
		b := open(t, pair.B, xdpport.Config{PinPath: dirs[pair.B], Mode: modes[1]})
		if !strings.Contains(a.Mode(), "generic XDP, copy mode") || !strings.Contains(b.Mode(), "native XDP, copy mode") {
			t.Errorf("modes %q and %q", a.Mode(), b.Mode())
		}
		expect(t, a, b, []byte("one way"))
		expect(t, b, a, []byte("and the other"))
		labtest.Must(t, errors.Join(a.Close(), b.Close()))
	}
}
