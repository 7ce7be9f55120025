//go:build linux

package xdpport_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/wire"
)

// openPorts opens several ports on an end's interface.
func openPorts(t *testing.T, end *lab.End, count int) (ports []*xdpport.Port) {
	t.Helper()
	cfg := xdpport.Config{Interface: end.Interface, Port: 7700}
	if err := end.Do(func() (err error) { ports, err = xdpport.OpenAll(cfg, count); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range ports {
			if err := errors.Join(p.Audit(), p.Close()); err != nil {
				t.Error(err)
			}
		}
	})
	return ports
}

// TestHold keeps some packets of each batch, between bad ones that are not in the batch: their bytes stay as they are while thousands come after them,
// and the books know where each frame is.
func TestHold(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	p := open(t, pair.A, xdpport.Config{Port: 7700})
	bad, good := crafted(pair, p.LocalAddr())
	raw := packetSocket(t, pair.B)
	type kept struct {
		token     uint64
		lent, was []byte
	}
	var held []kept
	var batch [64]dispatcher.Datagram
	for round := range 400 {
		for i := range 8 {
			frame := slices.Clone(good)
			if i%3 == round%3 {
				frame = bad["sum"]
			} else {
				datagram(frame, byte(round), byte(i))
			}
			if _, err := unix.Write(raw, frame); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		await(t, "a packet", func() bool { n = p.Receive(clock.Now(), batch[:]); return n > 0 })
		for i := range n {
			if (i+round)%2 == 0 || len(held) >= 100 {
				continue
			}
			token, ok := p.Hold(i)
			if !ok {
				t.Fatalf("packet %d of %d cannot be kept", i, n)
			}
			held = append(held, kept{token, batch[i].Payload, bytes.Clone(batch[i].Payload)})
		}
		for len(held) > 60 {
			if first := held[0]; !bytes.Equal(first.lent, first.was) {
				t.Fatalf("a packet that was kept became %x, was %x", first.lent, first.was)
			}
			p.Return(held[0].token)
			held = held[1:]
		}
		if err := p.Audit(); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range held {
		if !bytes.Equal(k.lent, k.was) {
			t.Errorf("a packet that was kept became %x, was %x", k.lent, k.was)
		}
		p.Return(k.token)
	}
}

// datagram marks a crafted frame, and has it carry no checksum: over IPv4 it need not.
func datagram(frame []byte, marks ...byte) {
	copy(frame[wire.FrameHeaderBytes:], marks)
	frame[wire.FrameHeaderBytes-2], frame[wire.FrameHeaderBytes-1] = 0, 0
}

// TestPortsShareQueues has two ports share four queues, and each receive from its own.
func TestPortsShareQueues(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	ports := openPorts(t, pair.A, 2)
	conns := openFlows(t, pair.B, ports[0])
	var batch [64]dispatcher.Datagram
	got := [2]int{}
	await(t, "packets at both ports", func() bool {
		for _, conn := range conns {
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range ports {
			got[i] += p.Receive(clock.Now(), batch[:])
		}
		return got[0] > 0 && got[1] > 0
	})
	for i, p := range ports {
		if s := p.Stats(); s.QueuesUnserved != 0 || s.PassedOn != 0 || s.Received != uint64(got[i]) {
			t.Errorf("port %d: %+v, and received %d", i, s, got[i])
		}
	}
	if mode := ports[1].Mode(); !strings.Contains(mode, "queues 0-3") {
		t.Errorf("mode: %s", mode)
	}
}

// TestHoldNotOfTheKernels refuses to keep what came by a kernel's socket: the next Receive writes over it.
func TestHoldNotOfTheKernels(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	p := open(t, pair.A, xdpport.Config{Queues: 1})
	conns := openFlows(t, pair.B, p)
	var batch [64]dispatcher.Datagram
	await(t, "a packet through the kernel", func() bool {
		for _, conn := range conns {
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		before := p.Stats().PassedOn
		n := p.Receive(clock.Now(), batch[:])
		passed := int(p.Stats().PassedOn - before)
		for i := range n {
			token, ok := p.Hold(i)
			if ok != (i >= passed) {
				t.Fatalf("packet %d was kept: %v; the first %d came through the kernel", i, ok, passed)
			}
			if ok {
				p.Return(token)
			}
		}
		return passed > 0 && n > passed
	})
}
