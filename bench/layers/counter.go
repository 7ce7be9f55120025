//go:build linux

package main

import (
	"encoding/binary"
	"sync"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// The two marks of a payload: which of the user's requests it is for, and which call of the layer that sends it.
const (
	markBytes    = 8
	payloadBytes = 2 * markBytes
)

// traffic is what left through a port.
type traffic struct {
	Packets  uint64            `json:"packet_count"`
	Requests uint64            `json:"request_count"`  // messages that carry a request, those that were sent again included
	Attempts map[uint64]uint64 `json:"attempt_counts"` // distinct attempts, by the user's mark; 0 = those that warm up
}

// sum is the distinct attempts of all marks.
func (t *traffic) sum() (n uint64) {
	for mark, attempts := range t.Attempts {
		if mark != 0 {
			n += attempts
		}
	}
	return n
}

// counter is middleware around a port that reads what leaves. An attempt is a call's mark with the number that its request says; the session's handle and running number are
// not taken, since a request that registers its session goes by another handle when it is sent again.
type counter struct {
	dispatcher.Port

	mu   sync.Mutex
	out  traffic
	seen map[attempt]struct{}
}

// attempt is what tells two attempts apart.
type attempt struct {
	call   uint64
	number uint8
}

func newCounter() *counter {
	return &counter{out: traffic{Attempts: map[uint64]uint64{}}, seen: map[attempt]struct{}{}}
}

// wrap puts it around the port, for EndpointConfig.WrapPort.
func (c *counter) wrap(port dispatcher.Port) dispatcher.Port {
	c.Port = port
	return c
}

// SendRefused is the port's own: see [dispatcher.SendRefused].
func (c *counter) SendRefused() uint64 { return dispatcher.SendRefused(c.Port) }

// Send reads the packet and passes it on.
func (c *counter) Send(b dispatcher.Buffer, to wire.Addr) {
	c.read(b.Bytes)
	c.Port.Send(b, to)
}

func (c *counter) read(packet []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Packets++
	p, err := wire.ParsePacket(packet)
	if err != nil {
		return
	}
	for rest := p.Messages; len(rest) > 0; {
		var m wire.Message
		if m, rest, err = wire.NextMessage(rest); err != nil {
			return
		}
		if m.Type != wire.TypeRequest && m.Type != wire.TypeRegister {
			continue
		}
		if r, err := wire.ParseRequest(m.Raw); err == nil && len(r.Payload) == payloadBytes { // else it repeats a registration whose call is over
			c.request(&r)
		}
	}
}

func (c *counter) request(r *wire.Request) {
	c.out.Requests++
	a := attempt{binary.BigEndian.Uint64(r.Payload[markBytes:]), r.Attempt}
	if _, known := c.seen[a]; !known {
		c.seen[a] = struct{}{}
		c.out.Attempts[binary.BigEndian.Uint64(r.Payload)]++
	}
}

// traffic is a copy of what was counted.
func (c *counter) traffic() traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.out
	t.Attempts = make(map[uint64]uint64, len(c.out.Attempts))
	for mark, n := range c.out.Attempts {
		t.Attempts[mark] = n
	}
	return t
}
