//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// receptionRequest says how to wait for packets. All arms wait alike by the clock: who looked again as soon as it is done with what it found
// would wait longer the longer it works.
type receptionRequest struct {
	Look  time.Duration `json:"look_ns"` // from one look to the next; 0 = at once
	Sleep bool          `json:"sleep"`   // in poll(2), when a look finds nothing
	span
}

// take waits until it is time to look, and receives what there is. Where there is nothing it sleeps before it returns, if it is to.
func (a *armChild) take(r *receptionRequest) (int, error) {
	if r.Look > 0 {
		now := clock.Now()
		for now.Sub(a.looked) < r.Look {
			now = clock.Now()
		}
		a.looked = now
	}
	n := a.ring.receive()
	if n > 0 || !r.Sleep {
		return n, nil
	}
	return 0, a.ring.wait()
}

// receive counts from the first packet on.
func (a *armChild) receive(r receptionRequest) (any, error) {
	for deadline := clock.Now().Add(patience); ; {
		if n, err := a.take(&r); n > 0 || err != nil {
			if err != nil {
				return nil, err
			}
			break
		}
		if clock.Now().After(deadline) {
			return nil, errors.New("nothing was received")
		}
	}
	return r.count(func() (int, error) { return a.take(&r) })
}

// echoed is what came of bouncing single packets.
type echoed struct {
	NsP50 int64  `json:"ns_p50"`
	NsP99 int64  `json:"ns_p99"`
	Count int64  `json:"count"`
	Lost  uint64 `json:"lost_count"`
}

// echoLimit is when a packet counts as lost: a thousand times what one takes.
const echoLimit = 5 * time.Millisecond

func (a *armChild) echo(r receptionRequest) (any, error) {
	out := packet(a.place, false)
	times := hdrhistogram.New(1, int64(echoLimit), 3)
	var lost uint64
	for a.ring.receive() > 0 { // what an earlier peer sent
	}
	now := clock.Now()
	begin, giveUp := now.Add(r.Warmup), now.Add(r.Warmup+r.Window+patience)
	for now.Sub(begin) < r.Window || times.TotalCount() == 0 { // a busy machine may be elsewhere for the whole of the window
		if now.After(giveUp) {
			return nil, errors.New("no packet came back")
		}
		sent := now
		if n, err := a.ring.send(out, 1); n != 1 || err != nil {
			return nil, fmt.Errorf("%d of 1 sent: %w", n, err)
		}
		for n, err := 0, error(nil); n == 0; {
			if n, err = a.take(&r); err != nil {
				return nil, err
			}
			if now = clock.Now(); now.Sub(sent) > echoLimit {
				break
			}
		}
		switch {
		case now.Sub(sent) > echoLimit:
			lost++
		case sent.After(begin):
			_ = times.RecordValue(int64(now.Sub(sent))) // within its bounds by the case before
		}
	}
	return echoed{times.ValueAtQuantile(50), times.ValueAtQuantile(99), times.TotalCount(), lost}, a.drain()
}

// heap is how many packets are bounced before they are taken: half of what the RX ring holds.
const heap = 512

// collected is what came of taking packets that lie on the RX ring already.
type collected struct {
	NsP50 float64 `json:"ns_p50"` // per packet
	Lost  uint64  `json:"lost_count"`
}

// collect bounces heaps of packets, and times only how they are taken off the ring once they are all there. Nobody sends meanwhile, so this is
// the time of the rings alone: the kernel does its work of receiving on the sender's CPU on a veth pair, and a receiver's rate is the sender's.
func (a *armChild) collect(s span) (any, error) {
	out := packet(a.place, false)
	times := hdrhistogram.New(1, int64(patience), 3) // in picoseconds per packet
	var lost uint64
	for a.ring.receive() > 0 { // what an earlier peer sent
	}
	start := clock.Now()
	begin, giveUp := start.Add(s.Warmup), start.Add(s.Warmup+s.Window+patience)
	for now := start; now.Sub(begin) < s.Window || times.TotalCount() == 0; now = clock.Now() {
		if now.After(giveUp) {
			return nil, errors.New("no heap of packets came back")
		}
		sent, err := a.bounceHeap(out)
		if err != nil {
			return nil, err
		}
		taken, took := a.takeHeap()
		lost += uint64(sent - min(sent, taken))
		if taken >= heap/2 && now.After(begin) {
			_ = times.RecordValue(1000 * int64(took) / int64(taken)) // within its bounds, or it is no figure
		}
	}
	return collected{float64(times.ValueAtQuantile(50)) / 1000, lost}, a.drain()
}

// bounceHeap sends a heap and waits until it is on the RX ring, or for as long as one packet may take.
func (a *armChild) bounceHeap(out []byte) (sent int, err error) {
	for limit := clock.Now().Add(echoLimit); sent < heap && clock.Now().Before(limit); {
		n, err := a.ring.send(out, min(32, heap-sent))
		if err != nil {
			return sent, err
		}
		sent += n
	}
	for limit := clock.Now().Add(echoLimit); a.ring.waiting() < sent && clock.Now().Before(limit); {
	}
	return sent, nil
}

// takeHeap takes all that there is.
func (a *armChild) takeHeap() (taken int, took time.Duration) {
	start := clock.Now()
	for n := a.ring.receive(); n > 0; n = a.ring.receive() {
		taken += n
	}
	return taken, clock.Now().Sub(start)
}
