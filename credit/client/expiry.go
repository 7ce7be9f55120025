package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Estimates are what a client knows of the time that a call to a server takes. One below zero counts as zero.
type Estimates struct {
	RTT     time.Duration // smoothed round trip
	Target  time.Duration // queueing delay that the server aims at
	Service time.Duration // mean service time
	// Standing is the queue that is there all the time: see Standing. Zero = the server's queue runs empty, or nothing is known.
	Standing time.Duration
	// Late is what the others leave out: see Late.
	Late time.Duration
}

// How long a call may wait for a credit, of what the law leaves it.
const (
	patienceMin = 5        // a fifth at least: the server must hear of it, and its credit come
	fullAt      = 3.0 / 4. // and no more, when so much of the target delay stands in the server's queue
)

// ExpiresAt is the instant from which a request that still waits at the client is no longer worth sending: what remains
// until its deadline is less than the round trip, the queueing delay that the server aims at, and the expected service.
//
// Up to there a call may wait, but it need not be of use. It is as long as the server runs out of work now and then: whoever waits is what it does next. A server
// whose queue never runs empty loses nothing by those that give up, since others come; and what is sent to it has that queue before it, and should have time for
// more than the average. Earliest deadline first would make each request a late one there, sent at its last instant. So the fuller the server is kept, the
// shorter its clients wait.
//
// In the simulator, goodput of the capacity with exponential 10 us: 100 clients at twice of it 99.0 % where calls waited for at least half of their slack, and 100.0 %
// so; at ten times 97.0 and 99.8 %; 1,000 clients at ten times 98.8 and 99.5 %, and of those refused after all, 99 in 100 learn it within 0.5 SLO instead of 0.99.
// What was tried besides: a fixed short wait (the artifact of Breakwater has its clients wait for one round trip: 95 % with 100 clients at the capacity where it is 98.5 %,
// and 12 % where 200 clients wake up by fives with ten calls each, where it is 84 %); a wait that shrinks with the share of calls that end unsent (as good under
// Poisson demand, 65 % with those bursts); one by how long nearly every request stays (82 % with them).
//
// What the server does not tell, it takes all the same: an answer may wait behind handlers that became ready before it, and where each CPU has a queue, most calls may meet an
// empty one and some a long one. A client sees that in calls that are late, and takes so much off the wait that one in fifty is (Late). On the paper's machine
// (docs/simulator.md) that is goodput of 3.49M/s instead of 3.41M/s at 1 us and 6M/s; for what it is worth at 10 us, see Late.Takes. Where no call is late it does nothing.
//
// A request without a deadline (zero) never expires. The result is unset only for those: an instant before the beginning
// of time becomes its first nanosecond.
func ExpiresAt(made, deadline clock.Time, e *Estimates) clock.Time {
	if deadline == 0 {
		return 0
	}
	// Written out: each call asks for this several times.
	left := deadline.Add(-max(e.RTT, 0))
	if left > 0 {
		left = left.Add(-max(e.Target, 0))
	}
	if left > 0 {
		left = left.Add(-max(e.Service, 0))
	}
	if left <= 0 {
		return 1
	}
	if slack := left.Sub(made); slack > 0 {
		left = made.Add(patience(slack, e))
	}
	return left
}

// patience is the part of a call's slack that it waits. Late shortens it alone, and not the time that a call must have left: what a server was late by in an outage
// must not forbid calls afterwards that would be in time.
func patience(slack time.Duration, e *Estimates) time.Duration {
	wait := slack - max(e.Late, 0)
	if e.Standing > 0 && e.Target > 0 {
		empty := 1 - float64(e.Standing)/(fullAt*float64(e.Target))
		wait = min(wait, time.Duration(float64(slack)*empty))
	}
	return max(wait, slack/patienceMin)
}
