//go:build linux

package xdpport_test

import (
	"bytes"
	"net/netip"
	"sync"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/wire"
)

// once sends a payload once, and waits until it arrives. It returns who sent it.
func once(t *testing.T, from, at *xdpport.Port, to wire.Addr, payload []byte) (sender wire.Addr) {
	t.Helper()
	send(t, from, to, payload)
	var batch [8]dispatcher.Datagram
	n := 0
	await(t, "the only packet of its kind", func() bool {
		from.Kick()
		n = at.Receive(clock.Now(), batch[:])
		return n > 0
	})
	if n != 1 || !bytes.Equal(batch[0].Payload, payload) {
		t.Fatalf("%d packets, the first of %d bytes", n, len(batch[0].Payload))
	}
	return batch[0].From
}

// TestFirstPacket: the first packet to a peer that the kernel has never heard of arrives, and so does the answer of a peer that has not heard of us either. Nothing
// is sent twice. On veth it arrives even with the offload on, with which the kernel's own packets carry a wrong checksum.
func TestFirstPacket(t *testing.T) {
	const largest = -1
	for name, c := range map[string]struct {
		cfg  lab.PairConfig
		size int
		of   func(*lab.End) netip.Addr
	}{
		"IPv4":                          {lab.PairConfig{}, 100, fourOf},
		"IPv4, the largest":             {lab.PairConfig{}, largest, fourOf},
		"IPv4, empty":                   {lab.PairConfig{}, 0, fourOf},
		"IPv4, with the offload on":     {lab.PairConfig{TxChecksumOffload: true}, 100, fourOf},
		"IPv4, more than a frame":       {lab.PairConfig{MTU: 3000}, largest, fourOf},
		"IPv6":                          {lab.PairConfig{IPv6: true}, 100, sixOf},
		"IPv6, the largest":             {lab.PairConfig{IPv6: true}, largest, sixOf},
		"IPv6, with the offload on":     {lab.PairConfig{IPv6: true, TxChecksumOffload: true}, 100, sixOf},
		"IPv6, of the link":             {lab.PairConfig{IPv6: true}, 100, linkLocal},
		"IPv4, of a port with both":     {lab.PairConfig{IPv6: true}, largest, either},
		"IPv4, queues without a socket": {lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2}, 100, fourOf},
		"IPv4, both of each":            {lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2, IPv6: true}, largest, either},
	} {
		t.Run(name, func(t *testing.T) {
			pair := labtest.NewPair(t, c.cfg)
			client, server := open(t, pair.B, xdpport.Config{Address: c.of(pair.B)}), open(t, pair.A, xdpport.Config{Address: c.of(pair.A), Port: 7700})
			if c.size == largest {
				c.size = client.PayloadMax()
			}
			payload := bytes.Repeat([]byte{7}, c.size)
			once(t, server, client, once(t, client, server, server.LocalAddr(), payload), payload)
			for _, p := range []*xdpport.Port{client, server} {
				if s := p.Stats(); s.Sent != 1 || s.Received != 1 || s.SendDropped+s.ReceiveDropped+s.PassedOn != 0 {
					t.Errorf("%v: %+v", p.LocalAddr(), s)
				}
			}
			if s := client.Stats(); s.LeftToKernel != 1 {
				t.Errorf("%+v: nobody had asked for the server before", s)
			}
		})
	}
}

func fourOf(end *lab.End) netip.Addr { return end.Address.Addr() }

func sixOf(end *lab.End) netip.Addr { return end.Address6.Addr() }

func either(*lab.End) netip.Addr { return netip.Addr{} }

// TestFirstPacketOfEachPort: the ports of an interface leave packets to the same kernel at the same time. All arrive.
func TestFirstPacketOfEachPort(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	ports, server := openPorts(t, pair.A, 2), open(t, pair.B, xdpport.Config{})
	var both sync.WaitGroup
	for i, p := range ports {
		b, ok := p.Lend()
		if !ok {
			t.Fatal("no buffer")
		}
		b.Bytes = append(b.Bytes, byte(i))
		both.Go(func() { p.Send(b, server.LocalAddr()); p.Kick() })
	}
	both.Wait()
	var batch [8]dispatcher.Datagram
	got := [2]int{}
	await(t, "a packet of each", func() bool {
		for _, d := range batch[:server.Receive(clock.Now(), batch[:])] {
			got[d.Payload[0]]++
		}
		return got[0]+got[1] == 2
	})
	if got != [2]int{1, 1} {
		t.Errorf("received %v", got)
	}
	for _, p := range ports {
		if s := p.Stats(); s.Sent != 1 || s.SendDropped != 0 {
			t.Errorf("%+v", s)
		}
	}
}
