package frame

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Addr is a byte offset in the UMEM, of a frame's first byte or of any byte in it.
type Addr uint64

// Desc is a descriptor as RX and TX rings hold it; the layout is that of struct xdp_desc (include/uapi/linux/if_xdp.h).
type Desc struct {
	Addr    Addr   // of the packet's first byte
	Len     uint32 // of the packet
	Options uint32 // zero unless multi-buffer is in use
}

// Owner is who may touch a frame.
type Owner uint8

// The owners, in the order of a frame's life; few frames are ever away.
const (
	Free   Owner = iota // the pool
	Fill                // on the fill ring or, filled, on the RX ring: the kernel may write it
	Rx                  // received, being read by us
	Tx                  // lent, being written by us
	Kernel              // on the TX ring or in a driver: the kernel may read it
	Away                // received, being read by another dispatcher, which gives it back to us

	ownerCount = int(Away) + 1
)

// String returns the owner's name in the documentation.
func (o Owner) String() string {
	if int(o) < ownerCount {
		return [ownerCount]string{"free", "fill", "rx", "tx", "kernel", "away"}[o]
	}
	return fmt.Sprintf("owner %d", uint8(o))
}

// Holder tells the queues apart that share a UMEM: the one on whose rings a frame is, or was last. It is below Config.Holders.
type Holder uint8

// HoldersMax is the largest number of queues on one UMEM.
const HoldersMax = 256

// ErrAudit means that a pool's books contradict each other: a frame is lost or has two owners.
var ErrAudit = errors.New("frame: audit failed")

// Config describes a pool.
type Config struct {
	Count     int  // number of frames, at least 1
	SizeBytes int  // of a frame, a power of two
	Holders   int  // queues on the UMEM, up to HoldersMax; 0 means 1
	Checked   bool // panic on a wrong move, for tests; otherwise Move refuses it
}

// state is a frame's entry in the books: its owner in the low byte, and in the high one the queue that it is on, or was last.
type state uint16

func stateOf(owner Owner, by Holder) state { return state(owner) | state(by)<<8 }

func (s state) owner() Owner   { return Owner(s) }
func (s state) holder() Holder { return Holder(s >> 8) }

// Pool is the books of one UMEM. It has one user at a time, without a lock.
type Pool struct {
	size    uint64
	shift   uint
	checked bool
	free    []Addr            // last in, first out: the most recently used frame is the one in the cache
	frames  []state           // by frame number
	held    [][ownerCount]int // by holder
	counts  [ownerCount]int   // the sums of held
}

// NewPool returns a pool of free frames.
func NewPool(cfg Config) (*Pool, error) {
	if cfg.Count < 1 || cfg.SizeBytes < 1 || cfg.SizeBytes&(cfg.SizeBytes-1) != 0 {
		return nil, fmt.Errorf("frame: %d frames of %d bytes: want at least 1, and a power of two", cfg.Count, cfg.SizeBytes)
	}
	holders := max(cfg.Holders, 1)
	if holders > HoldersMax {
		return nil, fmt.Errorf("frame: %d holders: at most %d", holders, HoldersMax)
	}
	pool := &Pool{
		size:    uint64(cfg.SizeBytes),
		shift:   uint(bits.TrailingZeros(uint(cfg.SizeBytes))),
		checked: cfg.Checked,
		free:    make([]Addr, cfg.Count),
		frames:  make([]state, cfg.Count),
		held:    make([][ownerCount]int, holders),
	}
	for i := range pool.free {
		// Reversed, so that the lowest addresses are used first.
		pool.free[i] = Addr(uint64(cfg.Count-1-i) << pool.shift)
	}
	pool.counts[Free], pool.held[0][Free] = cfg.Count, cfg.Count
	return pool, nil
}

// Base masks an address to its frame: the kernel returns addresses with headroom and metadata added.
func (p *Pool) Base(addr Addr) Addr { return addr &^ Addr(p.size-1) }

// Size returns the size of a frame in bytes.
func (p *Pool) Size() int { return int(p.size) }

// Total returns the number of frames.
func (p *Pool) Total() int { return len(p.frames) }

// Count returns how many frames an owner has.
func (p *Pool) Count(owner Owner) int { return p.counts[owner] }

// Held returns how many of an owner's frames are, or were last, on the rings of one queue.
func (p *Pool) Held(by Holder, owner Owner) int { return p.held[by][owner] }

// Contains reports whether length bytes from addr lie in one frame of the pool.
func (p *Pool) Contains(addr Addr, length uint32) bool {
	return uint64(addr)>>p.shift < uint64(len(p.frames)) && uint64(addr)&(p.size-1)+uint64(length) <= p.size
}

// Owner returns who owns the frame around addr; ok is false if addr is outside the UMEM.
func (p *Pool) Owner(addr Addr) (owner Owner, ok bool) {
	number := uint64(addr) >> p.shift
	if number >= uint64(len(p.frames)) {
		return Free, false
	}
	return p.frames[number].owner(), true
}

// Take gives a free frame to an owner on a queue; ok is false if there is none.
func (p *Pool) Take(to Owner, by Holder) (addr Addr, ok bool) {
	last := len(p.free) - 1
	if last < 0 {
		return 0, false
	}
	addr = p.free[last]
	p.free = p.free[:last]
	p.book(uint64(addr)>>p.shift, to, by)
	return addr, true
}

// Move passes the frame around addr from one owner to another, on the same queue; to Free puts it back into the pool. It refuses, and
// changes nothing, if addr is outside the UMEM or the frame is not from's; a checked pool panics then.
func (p *Pool) Move(addr Addr, from, to Owner) bool {
	number := uint64(addr) >> p.shift
	if number >= uint64(len(p.frames)) || p.frames[number].owner() != from || from == Free {
		p.refuse(addr, from, to)
		return false
	}
	p.book(number, to, p.frames[number].holder())
	if to == Free {
		p.free = append(p.free, p.Base(addr)) // never grows: its capacity is all frames
	}
	return true
}

// MoveOn is Move to the rings of a queue, which need not be the one that the frame was on. It does not go back into the pool by it.
func (p *Pool) MoveOn(addr Addr, from, to Owner, by Holder) bool {
	number := uint64(addr) >> p.shift
	if number >= uint64(len(p.frames)) || p.frames[number].owner() != from || from == Free || to == Free {
		p.refuse(addr, from, to)
		return false
	}
	p.book(number, to, by)
	return true
}

// book writes down whose a frame is from here on, and on which queue.
func (p *Pool) book(number uint64, to Owner, by Holder) {
	was := p.frames[number]
	p.counts[was.owner()]--
	p.held[was.holder()][was.owner()]--
	p.frames[number] = stateOf(to, by)
	p.counts[to]++
	p.held[by][to]++
}

// Revoke puts the frames back into the pool that a queue's rings held, and returns how many. The queue must be closed: nothing may
// write or read them any more. What its user has, received or lent, stays there.
func (p *Pool) Revoke(by Holder) int {
	count := 0
	for number, is := range p.frames {
		if owner := is.owner(); is.holder() == by && (owner == Fill || owner == Kernel) {
			p.Move(Addr(uint64(number)<<p.shift), owner, Free)
			count++
		}
	}
	return count
}

func (p *Pool) refuse(addr Addr, from, to Owner) {
	if !p.checked {
		return
	}
	owner, ok := p.Owner(addr)
	switch {
	case !ok:
		panic(fmt.Sprintf("frame: %#x is outside the UMEM of %d bytes", uint64(addr), p.size*uint64(len(p.frames))))
	case owner == Free && to == Free:
		panic(fmt.Sprintf("frame: double free of %#x", uint64(p.Base(addr))))
	}
	panic(fmt.Sprintf("frame: %#x cannot go from %v to %v: its owner is %v", uint64(p.Base(addr)), from, to, owner))
}

// Audit recounts all frames and compares the result with the books: each frame has one owner, the free list holds each
// free frame once, and the sum is the total.
func (p *Pool) Audit() error {
	var counts [ownerCount]int
	held := make([][ownerCount]int, len(p.held))
	sum := 0
	for _, is := range p.frames {
		counts[is.owner()]++
		held[is.holder()][is.owner()]++
	}
	if !slices.Equal(held, p.held) {
		return fmt.Errorf("%w: by queue, counted %v, booked %v", ErrAudit, held, p.held)
	}
	for _, count := range p.counts {
		sum += count
	}
	if counts != p.counts || sum != len(p.frames) || len(p.free) != p.counts[Free] {
		return fmt.Errorf("%w: %d frames, counted %v, booked %v, free list %d",
			ErrAudit, len(p.frames), counts, p.counts, len(p.free))
	}
	seen := make([]bool, len(p.frames))
	for _, addr := range p.free {
		number := addr >> p.shift
		if owner := p.frames[number].owner(); seen[number] || owner != Free {
			return fmt.Errorf("%w: %#x on the free list is %v or there twice", ErrAudit, uint64(addr), owner)
		}
		seen[number] = true
	}
	return nil
}
