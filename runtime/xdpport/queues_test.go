//go:build linux

package xdpport_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
)

const flows = 64

// openFlows are kernel sockets at the other end, connected to the port: the kernel spreads them over its transmit queues, and so over our
// receive queues.
func openFlows(t *testing.T, from *lab.End, to *xdpport.Port) []*net.UDPConn {
	t.Helper()
	var conns []*net.UDPConn
	for range flows {
		err := from.Do(func() error {
			conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to.LocalAddr().AddrPort()))
			if err == nil {
				conns = append(conns, conn)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, conn := range conns {
			conn.Close()
		}
	})
	return conns
}

// answer sends back what the port has received, and returns how many packets that were.
func answer(t *testing.T, p *xdpport.Port) int {
	t.Helper()
	var batch [16]dispatcher.Datagram
	n := p.Receive(clock.Now(), batch[:])
	for _, d := range batch[:n] {
		b, ok := p.Lend()
		if !ok {
			t.Fatal("nothing to lend")
		}
		b.Bytes = append(b.Bytes, d.Payload...)
		p.Send(b, d.From)
	}
	p.Kick()
	return n
}

// warm repeats one flow's datagram until it is answered: the first packets wait for their neighbour.
func warm(t *testing.T, p *xdpport.Port, conn *net.UDPConn) {
	t.Helper()
	await(t, "the first answer", func() bool {
		if _, err := conn.Write([]byte("warm")); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			answer(t, p)
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var back [16]byte
		_, err := conn.Read(back[:])
		return err == nil
	})
	for { // what else was sent
		answered := answer(t, p)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var back [16]byte
		if _, err := conn.Read(back[:]); err != nil && answered == 0 {
			return
		}
	}
}

// echo has each flow send one datagram, answers all of them, and checks that each flow gets its own back.
func echo(t *testing.T, p *xdpport.Port, conns []*net.UDPConn) {
	t.Helper()
	for i, conn := range conns {
		if _, err := fmt.Fprint(conn, i); err != nil {
			t.Fatal(err)
		}
	}
	answered := 0
	await(t, "all flows are received", func() bool {
		answered += answer(t, p)
		return answered == len(conns)
	})
	for i, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		var back [16]byte
		n, err := conn.Read(back[:])
		if want := fmt.Sprint(i); err != nil || string(back[:n]) != want {
			t.Fatalf("flow %d got %q, %v; want %q", i, back[:n], err, want)
		}
	}
}

func redirected(t *testing.T, p *xdpport.Port) (count uint64) {
	t.Helper()
	verdicts, err := p.Verdicts()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Reason == bpf.ReasonRedirected {
			count += v.Count
		}
	}
	return count
}

// TestEveryFlowIsAnswered on whichever of four queues it lands.
func TestEveryFlowIsAnswered(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	p := open(t, pair.A, xdpport.Config{})
	conns := openFlows(t, pair.B, p)
	warm(t, p, conns[0])
	before := redirected(t, p)
	echo(t, p, conns)
	if got := redirected(t, p) - before; got != flows {
		t.Errorf("%d packets came through AF_XDP, want %d", got, flows)
	}
	if mode := p.Mode(); mode != "AF_XDP on veth0 queues 0-3, native XDP, copy mode (no zero-copy there)" {
		t.Errorf("mode %q", mode)
	}
	if s := p.Stats(); s.PassedOn != 0 || s.QueuesUnserved != 0 {
		t.Errorf("%d packets through the kernel, %d queues unserved", s.PassedOn, s.QueuesUnserved)
	}
	if err := p.Audit(); err != nil {
		t.Error(err)
	}
}

// TestUnservedQueuesGoThroughTheKernel: two of four queues have a socket, and all flows are answered all the same.
func TestUnservedQueuesGoThroughTheKernel(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	p := open(t, pair.A, xdpport.Config{Queue: 1, Queues: 2})
	conns := openFlows(t, pair.B, p)
	warm(t, p, conns[0])
	before, passed := redirected(t, p), p.Stats().PassedOn
	echo(t, p, conns)
	xdp, kernel := redirected(t, p)-before, p.Stats().PassedOn-passed
	if xdp == 0 || kernel == 0 || xdp+kernel != flows {
		t.Errorf("%d packets through AF_XDP and %d through the kernel, want some of each, and %d", xdp, kernel, flows)
	}
	if got := p.Stats().QueuesUnserved; got != 2 {
		t.Errorf("%d queues unserved, want 2", got)
	}
}

// TestHungLoopIsNoticed: whoever owns the port does nothing, and the keeper says so until it goes on.
func TestHungLoopIsNoticed(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	p := open(t, pair.A, xdpport.Config{})
	var loop sync.Mutex
	stop, ended := make(chan struct{}), make(chan struct{})
	loop.Lock()
	go func() {
		p.Keep(func(f func()) bool {
			loop.Lock()
			defer loop.Unlock()
			f()
			return true
		}, stop)
		close(ended)
	}()
	await(t, "the keeper notices", func() bool { return strings.Contains(p.Trouble(), "loop has not run") })
	loop.Unlock()
	await(t, "the keeper is content", func() bool { return p.Trouble() == "" })
	close(stop)
	<-ended
	if err := p.Resize(1); !errors.Is(err, xdpport.ErrNotKept) {
		t.Errorf("resizing what nobody keeps: %v", err)
	}
}
