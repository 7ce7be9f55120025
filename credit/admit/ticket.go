package admit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Step is what becomes of a ticket.
type Step uint8

// The steps of a ticket.
const (
	Refused Step = iota // it did not run, and the gate knows it no more
	Run                 // it has a permit, until Done
	Wait                // it is in the queue: Next will say
)

// Ticket is one request at a gate, from Arrive until it is done or refused. It belongs to the caller, who may use it again then; the gate only links it.
type Ticket struct {
	// Value is the caller's own: to find the request again that Next names.
	Value any

	state        ticketState
	method       *Method
	deadline     clock.Time
	since        clock.Time // queued, or running
	work         time.Duration
	older, newer *Ticket
}

type ticketState uint8

const (
	ticketIdle ticketState = iota // not at a gate
	ticketWaiting
	ticketRunning
)

// waitingLine is the queue of a gate: tickets in the order of their arrival, and the work that they are expected to be.
type waitingLine struct {
	oldest, newest *Ticket
	count          int
	work           time.Duration
}

func (l *waitingLine) push(t *Ticket) {
	t.older, t.newer = l.newest, nil
	if l.newest == nil {
		l.oldest = t
	} else {
		l.newest.newer = t
	}
	l.newest = t
	l.count++
	l.work += t.work
}

func (l *waitingLine) remove(t *Ticket) {
	if t.older == nil {
		l.oldest = t.newer
	} else {
		t.older.newer = t.newer
	}
	if t.newer == nil {
		l.newest = t.older
	} else {
		t.newer.older = t.older
	}
	t.older, t.newer = nil, nil
	l.count--
	l.work -= t.work
}

// age is how long the oldest has waited.
func (l *waitingLine) age(now clock.Time) time.Duration {
	if l.oldest == nil {
		return 0
	}
	return max(now.Sub(l.oldest.since), 0)
}
