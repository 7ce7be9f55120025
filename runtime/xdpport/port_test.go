//go:build linux

package xdpport_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// patience bounds every wait; only a failure reaches it.
const patience = 30 * time.Second

// open opens a port at an end, and checks at the test's end that it has all its frames.
func open(t *testing.T, end *lab.End, cfg xdpport.Config) *xdpport.Port {
	t.Helper()
	port, err := tryOpen(end, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(port.Audit(), port.Close()); err != nil {
			t.Error(err)
		}
	})
	return port
}

func tryOpen(end *lab.End, cfg xdpport.Config) (port *xdpport.Port, err error) {
	cfg.Interface = end.Interface
	err = end.Do(func() (err error) { port, err = xdpport.Open(cfg); return err })
	return port, err
}

func inspect(t *testing.T, end *lab.End) (status *bpf.Status) {
	t.Helper()
	if err := end.Do(func() (err error) { status, err = bpf.Inspect(end.Interface); return err }); err != nil {
		t.Fatal(err)
	}
	return status
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// send sends one payload.
func send(t *testing.T, p *xdpport.Port, to wire.Addr, payload []byte) {
	t.Helper()
	buffer, ok := p.Lend()
	if !ok {
		t.Fatal("no buffer")
	}
	buffer.Bytes = append(buffer.Bytes, payload...)
	p.Send(buffer, to)
	p.Kick()
}

// expect receives until the payload has come, sending it again and again, since a device that has just come up may lose some. It
// returns who sent it.
func expect(t *testing.T, from, at *xdpport.Port, payload []byte) (sender wire.Addr) {
	t.Helper()
	return expectAt(t, from, at, at.LocalAddr(), payload)
}

// expectAt is expect, at one of a port's addresses.
func expectAt(t *testing.T, from, at *xdpport.Port, to wire.Addr, payload []byte) (sender wire.Addr) {
	t.Helper()
	var batch [8]dispatcher.Datagram
	await(t, fmt.Sprintf("%d bytes from %v", len(payload), from.LocalAddr()), func() bool {
		send(t, from, to, payload)
		n := at.Receive(clock.Now(), batch[:])
		for _, d := range batch[:n] {
			if bytes.Equal(d.Payload, payload) {
				sender = d.From
				return true
			}
		}
		return false
	})
	return sender
}

// TestPortsTalk sends every size both ways between two ports.
func TestPortsTalk(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	a, b := open(t, pair.A, xdpport.Config{Port: 7700}), open(t, pair.B, xdpport.Config{Address: netip.IPv4Unspecified()})
	if a.LocalAddr().String() != "10.77.0.1:7700" || b.LocalAddr().AddrPort().Addr() != pair.B.Address.Addr() {
		t.Fatalf("the ports are at %v and %v", a.LocalAddr(), b.LocalAddr())
	}
	if a.PayloadMax() != 1472 || a.Name() != "xdp" || !strings.Contains(a.Mode(), "veth0 queue 0, native XDP, copy mode") {
		t.Errorf("payload max %d, name %s, mode %s", a.PayloadMax(), a.Name(), a.Mode())
	}
	for _, size := range []int{0, 1, 17, 18, 19, 64, 1000, 1471, 1472} {
		payload := bytes.Repeat([]byte{byte(size)}, size)
		if from := expect(t, a, b, payload); from != a.LocalAddr() {
			t.Errorf("%d bytes came from %v", size, from)
		}
		if from := expect(t, b, a, payload); from != b.LocalAddr() {
			t.Errorf("%d bytes came from %v", size, from)
		}
	}
	for _, p := range []*xdpport.Port{a, b} {
		stats := p.Stats()
		if stats.Received == 0 || stats.Sent == 0 || stats.Kicks == 0 || stats.NoBuffer != 0 {
			t.Errorf("%+v", stats)
		}
		await(t, "all is sent", func() bool { p.Kick(); return p.Outstanding() == 0 })
		if err := p.Audit(); err != nil {
			t.Error(err)
		}
	}
}

// TestLendRunsOut borrows until there is nothing left, and gives all back.
func TestLendRunsOut(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	p := open(t, pair.A, xdpport.Config{})
	var lent []dispatcher.Buffer
	for {
		b, ok := p.Lend()
		if !ok {
			break
		}
		if len(b.Bytes) != 0 || cap(b.Bytes) != p.PayloadMax() {
			t.Fatalf("lent %d of %d bytes", len(b.Bytes), cap(b.Bytes))
		}
		lent = append(lent, b)
	}
	if len(lent) == 0 || p.Stats().NoBuffer != 1 {
		t.Errorf("%d lent, %d refused", len(lent), p.Stats().NoBuffer)
	}
	nobody := wire.AddrFrom(netip.MustParseAddrPort("10.77.0.9:1"))
	for i, b := range lent {
		if i%2 == 0 {
			p.Drop(b)
		} else {
			p.Send(b, nobody) // no neighbour there: the kernel takes some and waits for it, the rest is dropped
		}
	}
	if s := p.Stats(); s.SendDropped == 0 || s.LeftToKernel == 0 || s.SendDropped+s.LeftToKernel != uint64(len(lent)/2) {
		t.Errorf("%d dropped and %d left to the kernel, of %d", s.SendDropped, s.LeftToKernel, len(lent)/2)
	}
	if err := p.Audit(); err != nil {
		t.Error(err)
	}
	if b, ok := p.Lend(); !ok {
		t.Error("nothing came back")
	} else {
		p.Drop(b)
	}
}

// TestPortIsHeld has an ordinary socket hold the port, for as long as the AF_XDP socket serves it.
func TestPortIsHeld(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	port, err := tryOpen(pair.A, xdpport.Config{Port: 7700})
	if err != nil {
		t.Fatal(err)
	}
	listen := func() error {
		return pair.A.Do(func() error {
			for _, ip := range []net.IP{pair.A.Address.Addr().AsSlice(), nil} {
				conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: ip, Port: 7700})
				if err != nil {
					return err
				}
				conn.Close()
			}
			return nil
		})
	}
	if err := listen(); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a second socket on the port: %v", err)
	}
	before := inspect(t, pair.A)
	if _, err := tryOpen(pair.A, xdpport.Config{Port: 7700}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a second port: %v", err)
	}
	if after := inspect(t, pair.A); after.ProgramID != before.ProgramID {
		t.Errorf("program %d, then %d", before.ProgramID, after.ProgramID)
	}
	if err := port.Close(); err != nil {
		t.Error(err)
	}
	if err := listen(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// TestSecondOpen opens a queue that is taken, and another queue of an interface whose program is taken: both name this process and
// change nothing.
func TestSecondOpen(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	first, other := open(t, pair.A, xdpport.Config{Queues: 1}), open(t, pair.B, xdpport.Config{Queues: 1})
	before, fds := inspect(t, pair.A), descriptors(t)
	for queue := range uint32(3) {
		_, err := tryOpen(pair.A, xdpport.Config{Queue: queue})
		if err == nil {
			t.Fatalf("queue %d was opened", queue)
		}
		held, named := errors.AsType[*bpf.HeldError](err)
		switch {
		case queue == 0 && !errors.Is(err, xsk.ErrQueueBusy):
			t.Errorf("a queue that is taken: %v", err)
		case queue < 2 && (!named || !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) || held.ProgramID != before.ProgramID):
			t.Errorf("queue %d: the holder is not named: %v", queue, err)
		case queue == 2 && !errors.Is(err, xdpport.ErrNoQueue):
			t.Errorf("a queue that is not there: %v", err)
		}
	}
	if after := inspect(t, pair.A); after.ProgramID != before.ProgramID || after.LinkID != before.LinkID {
		t.Errorf("program %d by link %d, then %d by %d", before.ProgramID, before.LinkID, after.ProgramID, after.LinkID)
	}
	if after := descriptors(t); after != fds {
		t.Errorf("%d descriptors, then %d", fds, after)
	}
	expect(t, other, first, []byte("still here"))
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestReopen opens and closes one queue 100 times: each time it is free, and nothing is left of the last. The kernel frees a queue in the
// background, which on a machine with much else to do may take longer than an open waits.
func TestReopen(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	goroutines, fds := 0, 0
	for i := range 100 {
		var port *xdpport.Port
		await(t, "the queue is free", func() (opened bool) {
			var err error
			if port, err = tryOpen(pair.A, xdpport.Config{Port: 7700}); err != nil && !errors.Is(err, xsk.ErrQueueBusy) {
				t.Fatalf("open %d: %v", i, err)
			}
			return err == nil
		})
		if status := inspect(t, pair.A); !status.Attached || !status.Ours || status.LinkID == 0 {
			t.Fatalf("while it is open: %+v", status)
		}
		if err := errors.Join(port.Audit(), port.Close(), port.Close()); err != nil {
			t.Fatalf("close %d: %v", i, err)
		}
		if status := inspect(t, pair.A); status.Attached {
			t.Fatalf("after its end: %+v", status)
		}
		if i == 0 { // what is made once and kept
			goroutines, fds = goruntime.NumGoroutine(), descriptors(t)
		}
	}
	await(t, "no goroutine is left", func() bool { return goruntime.NumGoroutine() <= goroutines })
	await(t, "no descriptor is left", func() bool { goruntime.GC(); return descriptors(t) <= fds })
}

// TestClosedPort calls everything on a closed port, as a task does that comes too late.
func TestClosedPort(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	p, err := tryOpen(pair.A, xdpport.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p.Receive(clock.Now(), make([]dispatcher.Datagram, 1))
	before := p.Stats()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if n := p.Receive(clock.Now(), make([]dispatcher.Datagram, 1)); n != 0 {
		t.Errorf("received %d", n)
	}
	if _, ok := p.Lend(); ok {
		t.Error("lent a buffer")
	}
	p.Kick()
	if p.Outstanding() != 0 || p.Audit() != nil || p.Stats() != before {
		t.Errorf("%d outstanding, %v, %+v", p.Outstanding(), p.Audit(), p.Stats())
	}
	if _, err := p.Verdicts(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("verdicts: %v", err)
	}
}

// TestOpenErrors asks for what is not there. Nothing stays open.
func TestOpenErrors(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	fds := descriptors(t)
	for name, cfg := range map[string]xdpport.Config{
		"no interface":    {Interface: "no-such-if"},
		"loopback":        {Interface: "lo", Address: netip.MustParseAddr("10.77.0.1")},
		"foreign address": {Interface: pair.A.Interface, Address: netip.MustParseAddr("10.99.0.1")},
		"IPv6":            {Interface: pair.A.Interface, Address: netip.MustParseAddr("2001:db8::1")},
	} {
		err := pair.A.Do(func() error {
			port, err := xdpport.Open(cfg)
			if err == nil && name != "loopback" {
				t.Errorf("%s: opened", name)
			}
			if err == nil {
				return port.Close()
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := descriptors(t); after != fds {
		t.Errorf("%d descriptors, then %d", fds, after)
	}
}
