package client

import "time"

// Standing is the queueing delay that a server has all the time: seven of eight requests meet as much or more. A queue that absorbs bursts and runs empty in
// between has none, however long it is at its longest: what stands, and not what passes, says that there are always others to serve (CoDel, RFC 8289,
// section 3.2, takes the least delay of an interval for the same reason; a quantile does not hang on one request that was lucky).
//
// It is tracked by small steps, seven times as far down as up (Robbins and Monro, 1951): from nothing to the target in 1,024 answers, back in 146. The zero
// value knows of none.
type Standing struct{ delay time.Duration }

// standingSteps is the number of steps up to the target, standingDown of steps down for one up.
const (
	standingSteps = 1024
	standingDown  = 7
)

// Sample takes what a request waited at the server, in its queues together, and the delay that the server aims at, which is the measure of a step.
func (s *Standing) Sample(queued, target time.Duration) {
	step := max(target/standingSteps, 1)
	if queued < s.delay {
		s.delay = max(s.delay-standingDown*step, 0)
	} else if queued > s.delay {
		s.delay = min(s.delay+step, queued)
	}
}

// Delay is the estimate.
func (s *Standing) Delay() time.Duration { return s.delay }
