package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// inService counts the requests that are with workers, and bounds how many requests are in their handlers at once.
//
// Handlers that wait for a device or a lock leave the CPU to the next request, so a server whose bottleneck they are empties its queue into them: what
// waits there is seen by nobody, the signal reads zero, and the pool grows. With the bound the queue stands where its age is seen again.
// See descent for how it is found.
type inService struct {
	now, max, parallel int
	limit              int
	adapts             bool       // else the bound is the workers, always
	ended              clock.Time // the last one that did, or when one was last let in for want of that
	descent            descent
}

// Handlers that wait for others to start would wait for ever: if none ends for so long, one more may start, beyond the bound.
const standstillMax = time.Millisecond

func newInService(workers, parallel int, adapts bool) inService {
	return inService{max: workers, limit: workers, parallel: parallel, adapts: adapts}
}

// everyCPU is as many as leave no CPU idle, if all of them compute: one for each, and one that is about to.
func (s *inService) everyCPU() int { return s.parallel + 1 }

// start counts one more.
func (s *inService) start() {
	s.now++
	s.descent.window.peak = max(s.descent.window.peak, s.now)
}

// full reports whether no more may start.
func (s *inService) full(now clock.Time) bool {
	switch {
	case s.now < s.limit:
		return false
	case s.now < s.max && now.Sub(s.ended) > standstillMax:
		s.ended = now
		return false
	}
	s.descent.window.reached = true
	return true
}

// end counts one less, at now. It took so long, and had so much left of its budget when it started; zero = it has no deadline.
func (s *inService) end(now clock.Time, took, left time.Duration) {
	s.now--
	s.ended = now
	if s.adapts && s.descent.ended(now, took, left, s) {
		s.limit = s.descent.bound(now, s)
	}
}
