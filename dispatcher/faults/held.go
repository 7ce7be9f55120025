package faults

import (
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// packet is the copy of a packet that is held back: a frame never outlives the turn that it came in.
type packet struct {
	bytes []byte
	peer  wire.Addr
	at    clock.Time // when it goes on
	next  *packet
}

// held is what is held back in one direction, earliest first.
type held struct {
	first *packet
	count int
}

func (h *held) due(now clock.Time) bool { return h.first != nil && h.first.at <= now }

func (h *held) take() *packet {
	k := h.first
	h.first, k.next = k.next, nil
	h.count--
	return k
}

// put keeps the order of time; equal times keep their order.
func (h *held) put(k *packet) {
	at := &h.first
	for *at != nil && (*at).at <= k.at {
		at = &(*at).next
	}
	k.next, *at = *at, k
	h.count++
}

// hold keeps a copy until an instant, and reports false when too many are held already.
func (p *Port) hold(h *held, bytes []byte, peer wire.Addr, at clock.Time) bool {
	if h.count >= p.cfg.HeldMax {
		return false
	}
	k := p.spare
	if k == nil {
		k = &packet{}
	} else {
		p.spare = k.next
	}
	k.bytes, k.peer, k.at, k.next = append(k.bytes[:0], bytes...), peer, at, nil
	h.put(k)
	return true
}

func (p *Port) free(k *packet) {
	k.next = p.spare
	p.spare = k
}
