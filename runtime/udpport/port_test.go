package udpport_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/udpport"
	"github.com/stillwater-rpc/stillwater/wire"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

func open(t testing.TB, cfg udpport.Config) *udpport.Port {
	t.Helper()
	if !cfg.Listen.IsValid() {
		cfg.Listen = loopback
	}
	p, err := udpport.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// send queues one payload.
func send(t testing.TB, p *udpport.Port, to wire.Addr, payload []byte) {
	t.Helper()
	b, ok := p.Lend()
	if !ok {
		t.Fatal("no buffer is free")
	}
	b.Bytes = append(b.Bytes, payload...)
	p.Send(b, to)
}

// receive waits until want datagrams have come, and returns copies.
func receive(t testing.TB, p *udpport.Port, want int) (got []dispatcher.Datagram) {
	t.Helper()
	batch := make([]dispatcher.Datagram, 64)
	for deadline := clock.Now().Add(10 * time.Second); len(got) < want; {
		if clock.Now().After(deadline) {
			t.Fatalf("%d of %d datagrams came: %+v", len(got), want, p.Stats())
		}
		if err := p.Wait(time.Second, -1); err != nil {
			t.Fatal(err)
		}
		for _, d := range batch[:p.Receive(clock.Now(), batch)] {
			d.Payload = bytes.Clone(d.Payload)
			got = append(got, d)
		}
	}
	return got
}

func TestBatchesKeepOrderAndContent(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		t.Run(listen, func(t *testing.T) {
			a := open(t, udpport.Config{Listen: netip.MustParseAddrPort(listen)})
			b := open(t, udpport.Config{Listen: netip.MustParseAddrPort(listen)})
			to := b.LocalAddr()
			if listen == "[::]:0" { // a socket for both families, reached by IPv4
				to = wire.AddrFrom(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port))
			}
			const count = 200 // more than three receive batches, more than six send batches
			const kicks = (count + udpport.SendBatch - 1) / udpport.SendBatch
			for i := range count {
				send(t, a, to, binary.BigEndian.AppendUint32(make([]byte, i), uint32(i)))
			}
			before := clock.Now()
			a.Kick()
			got := receive(t, b, count)
			after := clock.Now()
			for i, d := range got {
				if len(d.Payload) != i+4 || binary.BigEndian.Uint32(d.Payload[i:]) != uint32(i) {
					t.Fatalf("datagram %d is %d bytes, %x", i, len(d.Payload), d.Payload)
				}
				if d.From.Port != a.LocalAddr().Port || (listen != "[::]:0" && d.From != a.LocalAddr()) {
					t.Fatalf("datagram %d is from %v, want %v", i, d.From, a.LocalAddr())
				}
				if d.Arrival.IsZero() || d.Arrival.After(after) {
					t.Fatalf("datagram %d, sent at %d, arrived at %d, and was received before %d", i, before, d.Arrival, after)
				}
			}
			if s := a.Stats(); s.Sent != count || s.SendDropped != 0 || s.Kicks != kicks {
				t.Errorf("the sender counts %+v", s)
			}
			if s := b.Stats(); s.Received != count || s.ReceiveDropped != 0 {
				t.Errorf("the receiver counts %+v", s)
			}
		})
	}
}

func TestWithoutStampsArrivalIsNow(t *testing.T) {
	a, b := open(t, udpport.Config{}), open(t, udpport.Config{NoKernelStamps: true})
	send(t, a, b.LocalAddr(), []byte("x"))
	a.Kick()
	batch := make([]dispatcher.Datagram, 1)
	if n := b.Receive(12345, batch); n != 1 || batch[0].Arrival != 12345 {
		t.Errorf("received %d, arrived at %d", n, batch[0].Arrival)
	}
}

func TestTooLongDatagramsAreDropped(t *testing.T) {
	a, b := open(t, udpport.Config{PayloadMax: 200}), open(t, udpport.Config{PayloadMax: 100})
	for _, size := range []int{100, 101, 1, 200, 99} {
		send(t, a, b.LocalAddr(), make([]byte, size))
	}
	a.Kick()
	got := receive(t, b, 3)
	if len(got[0].Payload) != 100 || len(got[1].Payload) != 1 || len(got[2].Payload) != 99 {
		t.Errorf("received %d, %d and %d bytes", len(got[0].Payload), len(got[1].Payload), len(got[2].Payload))
	}
	if s := b.Stats(); s.Received != 3 || s.ReceiveDropped != 2 {
		t.Errorf("the receiver counts %+v", s)
	}
}

func TestBuffers(t *testing.T) {
	a, b := open(t, udpport.Config{BufferCount: 3}), open(t, udpport.Config{})
	var lent []dispatcher.Buffer
	for buffer, ok := a.Lend(); ok; buffer, ok = a.Lend() {
		if len(buffer.Bytes) != 0 || cap(buffer.Bytes) != a.PayloadMax() || cap(buffer.Bytes) != udpport.DefaultPayloadMax {
			t.Errorf("lent %d of %d bytes", len(buffer.Bytes), cap(buffer.Bytes))
		}
		lent = append(lent, buffer)
	}
	if len(lent) != 3 || a.Stats().NoBuffer != 1 {
		t.Fatalf("lent %d buffers of 3, counts %+v", len(lent), a.Stats())
	}
	a.Drop(lent[0])
	again, ok := a.Lend()
	if !ok {
		t.Fatal("a dropped buffer is not free")
	}
	lent[0] = again
	for i, buffer := range lent {
		buffer.Bytes = append(buffer.Bytes, byte(i))
		a.Send(buffer, b.LocalAddr())
	}
	if _, ok := a.Lend(); ok {
		t.Error("a queued buffer was lent")
	}
	a.Kick()
	for i, d := range receive(t, b, 3) {
		if len(d.Payload) != 1 || d.Payload[0] != byte(i) {
			t.Errorf("datagram %d is %x", i, d.Payload)
		}
	}
	if _, ok := a.Lend(); !ok {
		t.Error("no buffer is free after Kick")
	}
}

func TestMisuseOfBuffersPanics(t *testing.T) {
	for name, misuse := range map[string]func(p *udpport.Port, b dispatcher.Buffer){
		"sent twice":     func(p *udpport.Port, b dispatcher.Buffer) { p.Send(b, p.LocalAddr()); p.Send(b, p.LocalAddr()) },
		"dropped twice":  func(p *udpport.Port, b dispatcher.Buffer) { p.Drop(b); p.Drop(b) },
		"foreign token":  func(p *udpport.Port, b dispatcher.Buffer) { p.Drop(dispatcher.Buffer{Token: 1 << 40}) },
		"another memory": func(p *udpport.Port, b dispatcher.Buffer) { b.Bytes = []byte{1}; p.Send(b, p.LocalAddr()) },
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, udpport.Config{})
			b, _ := p.Lend()
			defer func() {
				if recover() == nil {
					t.Error("nobody noticed")
				}
			}()
			misuse(p, b)
		})
	}
}

// TestRefusalsAreCounted sends to where the kernel does not.
func TestRefusalsAreCounted(t *testing.T) {
	a, b := open(t, udpport.Config{PayloadMax: 65507}), open(t, udpport.Config{})
	send(t, a, wire.AddrFrom(netip.MustParseAddrPort("[2001:db8::1]:9")), []byte("wrong family"))
	send(t, a, b.LocalAddr(), []byte("first"))
	send(t, a, wire.AddrFrom(netip.MustParseAddrPort("255.255.255.255:9")), []byte("broadcast needs SO_BROADCAST"))
	send(t, a, wire.AddrFrom(netip.MustParseAddrPort("127.0.0.1:0")), []byte("no port"))
	send(t, a, b.LocalAddr(), []byte("second"))
	a.Kick()
	got := receive(t, b, 2)
	if string(got[0].Payload) != "first" || string(got[1].Payload) != "second" {
		t.Errorf("received %q and %q", got[0].Payload, got[1].Payload)
	}
	if s := a.Stats(); s.Sent != 2 || s.SendDropped != 3 || a.Outstanding() != 0 {
		t.Errorf("the sender counts %+v", s)
	}
}

func TestWaitHearsTheWake(t *testing.T) {
	p := open(t, udpport.Config{})
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	wake := ends[0]
	if err := p.Wait(0, wake); err != nil {
		t.Errorf("without anything: %v", err)
	}
	if err := p.Wait(time.Millisecond, wake); err != nil {
		t.Errorf("over the timeout: %v", err)
	}
	if _, err := unix.Write(ends[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(-1, wake); err != nil {
		t.Errorf("with the pipe readable: %v", err)
	}
	peer := open(t, udpport.Config{})
	send(t, peer, p.LocalAddr(), []byte("x"))
	peer.Kick()
	if err := p.Wait(-1, -1); err != nil {
		t.Errorf("with a packet there: %v", err)
	}
}

func TestClosedPort(t *testing.T) {
	p := open(t, udpport.Config{})
	send(t, p, p.LocalAddr(), []byte("x"))
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.Kick()
	if got := p.Receive(clock.Now(), make([]dispatcher.Datagram, 1)); got != 0 || p.Stats().SendDropped != 1 {
		t.Errorf("a closed port received %d, counts %+v", got, p.Stats())
	}
}

func TestOpenErrors(t *testing.T) {
	taken := open(t, udpport.Config{}).LocalAddr().AddrPort()
	for name, cfg := range map[string]udpport.Config{
		"no address":           {},
		"address taken":        {Listen: taken},
		"foreign IPv6 address": {Listen: netip.MustParseAddrPort("[2001:db8::1]:0")},
		"no zone":              {Listen: netip.MustParseAddrPort("[fe80::1]:0")},
		"no such zone":         {Listen: netip.MustParseAddrPort("[fe80::1%nosuch0]:0")},
		"foreign address":      {Listen: netip.MustParseAddrPort("192.0.2.1:0")},
		"payload max too big":  {Listen: loopback, PayloadMax: 65508},
		"payload max negative": {Listen: loopback, PayloadMax: -1},
		"no buffers":           {Listen: loopback, BufferCount: -1},
	} {
		if p, err := udpport.Open(cfg); err == nil {
			t.Errorf("%s: opened %v", name, p.LocalAddr())
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestInterop talks to the standard library.
func TestInterop(t *testing.T) {
	p := open(t, udpport.Config{})
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(p.LocalAddr().AddrPort()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	d := receive(t, p, 1)[0]
	if string(d.Payload) != "ping" || d.From.String() != c.LocalAddr().String() || p.Name() != "udp" {
		t.Errorf("received %q from %v, want %v", d.Payload, d.From, c.LocalAddr())
	}
	send(t, p, d.From, []byte("pong"))
	p.Kick()
	buffer := make([]byte, 10)
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(buffer); err != nil || string(buffer[:n]) != "pong" {
		t.Errorf("read %q, %v", buffer[:n], err)
	}
}
