//go:build linux

package contract

import (
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// Queue is one AF_XDP socket on one NIC queue, with its frames. It has one user at a time. The methods of [xsk.Queue] say what each one does;
// what is said here is what the cases look at.
type Queue interface {
	// Receive takes packets in order, whole. Their bytes stay as they are until Release, whatever is received, lent or sent meanwhile. It
	// tops up the fill ring, so that a queue that was overrun goes on by itself.
	Receive(batch []frame.Desc) int
	// Refill does that alone, and returns how many frames it added.
	Refill() int
	// Release gives received frames back.
	Release(batch []frame.Desc)
	// Bytes returns a received packet, or one that is being built.
	Bytes(d frame.Desc) []byte
	// Stamp returns the 8 bytes of metadata before a received packet.
	Stamp(d frame.Desc) uint64
	// PacketSizeMax is the longest packet, sent or received.
	PacketSizeMax() int

	// Lend lends TxRingSize frames, less those that the kernel has, each once, and then none.
	Lend() (addr frame.Addr, packet []byte, ok bool)
	// Drop gives a lent frame back.
	Drop(addr frame.Addr)
	// Submit takes a lent frame. It refuses, and counts as SendRefused, what is empty, crosses a frame, or was not lent.
	Submit(d frame.Desc) bool
	// Room says whether Submit has room; it has while a frame is lent.
	Room() bool
	// Kick sends all that was submitted, in order, as far as the kernel takes it. On a link that is down the error is [xsk.ErrLinkDown] and
	// packets stay; on a device that is gone it is [xsk.ErrDeviceGone] or ErrLinkDown. It never panics.
	Kick() error
	// Reclaim takes back the frames that were sent, and says how many.
	Reclaim() int
	// Outstanding is how many frames were submitted and not reclaimed. Kicks bring it to zero on a link that is up, even where packets are lost.
	Outstanding() int

	// Frames returns how many frames an owner has; all owners together have FrameCount.
	Frames(owner frame.Owner) int
	// Audit checks that every frame has exactly one owner.
	Audit() error
	// Statistics are the kernel's, and what the queue refused.
	Statistics() (xsk.Statistics, error)

	// FD is the bound socket, -1 once closed.
	FD() int
	// Mode is "copy" or "zero-copy".
	Mode() string
	// Close may be called again.
	Close() error
}
