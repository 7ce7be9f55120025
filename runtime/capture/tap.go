package capture

import (
	"fmt"
	"io"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/capture/pcapng"
)

const (
	// drainEvery is how long a packet waits for the writer, unless many come.
	drainEvery = 10 * time.Millisecond
	// chunkBytes is what one write carries: it keeps a P, which may be the loop's too, for about 15 us, and then others run first.
	chunkBytes = 16 << 10
	// closePatience is how long the reader of a pipe gets to take the rest.
	closePatience = 2 * time.Second
)

// Tap captures the packets of one port.
type Tap struct {
	cfg       Config
	ring      *ring
	sink      sink   // the writer's
	patience  func() // bounds from here on how long a write may take, where one can wait for a reader
	wallAhead int64  // of CLOCK_REALTIME before CLOCK_MONOTONIC, as it was at the start: the file's stamps never jump

	deaf      atomic.Bool // nothing more is written: the file is full, or failed, or complete
	captured  atomic.Uint64
	missed    atomic.Uint64
	unwritten atomic.Uint64 // of the captured
	counters  counters

	wake    chan struct{} // the ring fills
	closing chan struct{}
	closed  chan struct{}
	wraps   sync.Once
	wrapped bool
	closes  sync.Once
	err     error // once closed
}

// Stats counts packets.
type Stats struct {
	Captured uint64 // in the file, or on the way there
	Missed   uint64 // not captured: the ring or the file was full, or writing failed
}

// counters are a port's, for the writer.
type counters struct{ received, receiveDropped, sendDropped atomic.Uint64 }

func (c *counters) set(s *dispatcher.PortStats) {
	c.received.Store(s.Received)
	c.receiveDropped.Store(s.ReceiveDropped)
	c.sendDropped.Store(s.SendDropped)
}

// New captures into a writer, which is used by one goroutine, and closed in the end if it can be. [Create] is New for a file.
func New(w io.Writer, cfg Config) (*Tap, error) {
	if cfg.Rotate {
		return nil, fmt.Errorf("capture: a writer cannot be rotated: it takes a file with a name")
	}
	return newTap(w, cfg)
}

func newTap(w io.Writer, cfg Config) (*Tap, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	t := &Tap{
		cfg: cfg, ring: newRing(cfg.RingBytes), patience: func() {},
		wake: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{}),
	}
	t.sink = sink{out: w, max: cfg.FileBytes - trailerMax, head: fileHead(&cfg, nil), statistics: t.statistics}
	return t, nil
}

// Wrap puts the tap on a port, for EndpointConfig.WrapPort. A tap has one port: with a second one it panics.
func (t *Tap) Wrap(inner dispatcher.Port) dispatcher.Port {
	first := false
	t.wraps.Do(func() { first = true })
	if !first {
		panic("capture: a tap is for one port, and this one has it or is closed")
	}
	t.wrapped = true
	t.wallAhead = time.Now().UnixNano() - int64(clock.Now())
	p := &port{
		Port: inner, tap: t, local: inner.LocalAddr(), snap: t.cfg.SnapBytes, wallAhead: t.wallAhead,
		block: make([]byte, 0, t.cfg.SnapBytes+commentMax+pcapng.PacketOverheadBytes),
	}
	t.sink.head = fileHead(&t.cfg, inner)
	go t.write()
	return p
}

// put puts a block on the ring, if there is room.
func (t *Tap) put(block []byte) bool {
	if !t.ring.put(block) {
		return false
	}
	if t.ring.filling() {
		select {
		case t.wake <- struct{}{}:
		default: // it is on its way
		}
	}
	return true
}

// write is the writer: it moves blocks from the ring to the file until the tap is closed.
func (t *Tap) write() {
	defer close(t.closed)
	buffer := make([]byte, max(chunkBytes, t.cfg.SnapBytes+commentMax+pcapng.PacketOverheadBytes))
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	t.sink.begin()
	for open := true; open; {
		select {
		case <-t.wake:
		case <-ticker.C:
		case <-t.closing:
			open = false
			t.deaf.Store(true)
		}
		t.drain(buffer)
	}
	last := []byte(nil)
	if t.wrapped {
		s := t.Stats()
		last = t.statistics(fmt.Sprintf("captured %d packets, missed %d; the port refused to send %d",
			s.Captured, s.Missed, t.counters.sendDropped.Load()))
	}
	t.err = t.sink.end(last)
}

// drain moves all that is on the ring.
func (t *Tap) drain(buffer []byte) {
	for {
		blocks := t.ring.take(buffer, chunkBytes)
		if len(blocks) == 0 {
			return
		}
		t.unwritten.Add(t.sink.write(blocks))
		if t.sink.ended() {
			t.deaf.Store(true)
		}
		goruntime.Gosched()
	}
}

// statistics is a block of the port's counters.
func (t *Tap) statistics(comment string) []byte {
	received, dropped := t.counters.received.Load(), t.counters.receiveDropped.Load()
	s := pcapng.Statistics{
		Time: int64(clock.Now()) + t.wallAhead, Received: received + dropped, Dropped: dropped, Delivered: received, Comment: []byte(comment),
	}
	return s.Append(nil)
}

// Stats counts so far, from any goroutine.
func (t *Tap) Stats() Stats {
	unwritten := t.unwritten.Load()
	return Stats{Captured: t.captured.Load() - unwritten, Missed: t.missed.Load() + unwritten}
}

// Close writes what is on the ring, completes the file and closes it, from any goroutine; the port it is on goes on without a capture. Closing that port does this
// too. Only the first call does anything, and all return the first error of writing.
func (t *Tap) Close() error {
	t.closes.Do(func() {
		t.wraps.Do(func() { go t.write() }) // never on a port: a file without an interface
		t.patience()
		close(t.closing)
	})
	<-t.closed
	return t.err
}
