package handover

import (
	"sync/atomic"

	"github.com/stillwater-rpc/stillwater/dispatcher"
)

// cacheLine keeps what two CPUs write apart.
const cacheLine = 64

// lane is the ring from one dispatcher to another. Packets are given back in the order in which they were taken, since none is kept for longer than a turn:
// so one ring brings them there and their buffers home, with three positions that follow each other round: home <= done <= taken <= put.
type lane struct {
	slots []slot // a power of two of them

	_   [cacheLine]byte
	put atomic.Uint64 // packets that were put; by the sender
	_   [cacheLine]byte
	// done is how many the receiver does not read any more; by the receiver.
	done atomic.Uint64

	_    [cacheLine]byte
	home uint64 // whose buffers are back; the sender's own
	_    [cacheLine]byte
	// taken is how many were taken off; the receiver's own.
	taken uint64
	_     [cacheLine]byte
}

// slot is a packet, and what its sender knows its buffer by.
type slot struct {
	dispatcher.Datagram
	token uint64
}

func newLane(slots int) *lane { return &lane{slots: make([]slot, slots)} }

func (l *lane) slot(position uint64) *slot { return &l.slots[position&uint64(len(l.slots)-1)] }

// full reports to the sender whether there is room for no more packet. What lies in between is at the receiver, or its buffer was not taken home yet.
func (l *lane) full() bool { return l.put.Load()-l.home == uint64(len(l.slots)) }

// send puts a packet on a lane that is not full. Its bytes must stay as they are until its token comes home.
func (l *lane) send(d *dispatcher.Datagram, token uint64) {
	put := l.put.Load()
	*l.slot(put) = slot{*d, token}
	l.put.Store(put + 1)
}

// back returns to the sender the token of one more packet that was handled, if there is one.
func (l *lane) back() (token uint64, ok bool) {
	if l.home == l.put.Load() || l.home == l.done.Load() {
		return 0, false
	}
	token = l.slot(l.home).token
	l.home++
	return token, true
}

// take moves packets into the receiver's batch, and returns how many.
func (l *lane) take(batch []dispatcher.Datagram) int {
	n := int(min(l.put.Load()-l.taken, uint64(len(batch))))
	for i := range n {
		batch[i] = l.slot(l.taken + uint64(i)).Datagram
	}
	l.taken += uint64(n)
	return n
}

// release tells the sender that the receiver reads none any more of those that it has taken.
func (l *lane) release() {
	if l.done.Load() != l.taken {
		l.done.Store(l.taken)
	}
}

// waiting reports to the receiver whether there are packets for it.
func (l *lane) waiting() bool { return l.put.Load() != l.taken }
