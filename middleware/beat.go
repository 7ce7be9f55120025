package middleware

import (
	"os"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// beat measures what no gate can see: how long what arrives lies in its socket, until Go's scheduler asks the network poller and has a goroutine read it. While all
// CPUs are busy with goroutines, that is done between two rounds of them, and under overload a request waits there for as long as in any queue.
//
// A byte through a pipe takes the same way. It is written at a known time, and its lateness is what a request that came at that time met. A stall of the whole process
// (no CPU, a collection) shows as well. Beats go on while requests arrive, twenty to an SLO, and cost a few microseconds each; without requests there are none.
type beat struct {
	every       time.Duration
	now         func() clock.Time
	read, write *os.File

	mu       sync.Mutex
	timer    *time.Timer
	due      clock.Time // when the byte on its way was due; zero = none is
	lateness time.Duration
	closed   bool
	wanted   bool // a request has arrived since the last one
}

// beatsPerSLO is how often the delay is measured.
const beatsPerSLO = 20

// newBeat makes one; nil, which measures nothing, if there is no pipe to be had.
func newBeat(slo time.Duration, now func() clock.Time) *beat {
	read, write, err := os.Pipe()
	if err != nil {
		return nil
	}
	b := &beat{every: max(slo/beatsPerSLO, 50*time.Microsecond), now: now, read: read, write: write}
	b.timer = time.AfterFunc(time.Hour, func() { b.write.Write([]byte{0}) })
	b.timer.Stop()
	go b.run()
	return b
}

// delay is what a request that is read now has met, about.
func (b *beat) delay(now clock.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wanted = true
	if b.closed {
		return 0
	}
	if b.due == 0 {
		b.lateness = 0
		b.start(now)
		return 0
	}
	return max(b.lateness, now.Sub(b.due))
}

func (b *beat) start(now clock.Time) {
	b.wanted = false
	b.due = now.Add(b.every)
	b.timer.Reset(b.every)
}

func (b *beat) run() {
	var buffer [16]byte
	for {
		if _, err := b.read.Read(buffer[:]); err != nil {
			return
		}
		b.heard(b.now())
	}
}

func (b *beat) heard(now clock.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lateness = max(now.Sub(b.due), 0)
	b.due = 0
	if b.wanted && !b.closed {
		b.start(now)
	}
}

func (b *beat) close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.due, b.lateness = true, 0, 0
	b.timer.Stop()
	b.read.Close()
	b.write.Close()
}
