//go:build linux

package xdpport

import (
	"math/bits"

	"github.com/stillwater-rpc/stillwater/dispatcher/handover"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

var _ handover.Holder = (*Port)(nil)

// Hold keeps the frame of the i-th datagram of the last Receive from being released with the others: see [handover.Holder]. What came by the kernel's
// sockets is in no frame, and sockets of another implementation have no such books.
func (p *Port) Hold(i int) (token uint64, ok bool) {
	at := i - p.slowCount
	if p.own == nil || at < 0 || !p.own.HandOver(p.batch[at]) {
		return 0, false
	}
	p.held |= 1 << at
	return uint64(p.batch[at].Addr), true
}

// Return gives a frame that was kept back to the pool.
func (p *Port) Return(token uint64) { p.own.TakeBack(frame.Addr(token)) }

// release gives back what the last Receive lent out, but for what was kept.
func (p *Port) release() {
	for ; p.held != 0; p.held &^= 1 << (bits.Len64(p.held) - 1) {
		// The last one first: what fills its place comes from behind it, and is not held.
		p.taken--
		p.batch[bits.Len64(p.held)-1] = p.batch[p.taken]
	}
	p.umem.Release(p.batch[:p.taken])
	p.taken = 0
}
