package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// inService counts the requests that are with workers, and bounds how many requests are in their handlers at once.
//
// Handlers that wait for a device or a lock leave the CPU to the next request, so a server whose bottleneck they are empties its queue into them: what
// waits there is seen by nobody, the signal reads zero, and the pool grows. What shows is that requests take longer in their handlers than they do
// when there is a CPU for each. So the bound falls while they take more than twice as long, by a tenth for every window of completions, and
// rises by one while they do not (as TCP Vegas has it with round trips: Brakmo and Peterson, 1995). Then the queue stands where its age
// is seen again. Requests that compute are never more than there are CPUs, and are not bounded by this. (Ten CPUs, a device that
// serves 8 requests at once for 40 us each, twice what it can do: goodput 39 % of it without the bound, 97 % with it. Where one call in ten holds a
// lock for 50 us it is 89 and 86 %: expected service refuses most of what is too much there, and the bound keeps CPUs idle.)
type inService struct {
	now, max, parallel int
	limit              int
	adapts             bool          // else the bound is the workers, always
	expected, took     time.Duration // of the completions of this window: alone, and as it was
	completed          int
	reached            bool       // the bound was met in this window
	ended              clock.Time // the last one that did, or when the bound was last raised for want of one
}

const (
	stretchMax    = 2                // times as long as alone,
	stretchFree   = time.Microsecond // and this much longer: handlers that take no time are never told apart from noise
	windowOf      = 64               // completions
	decreaseShare = 10               // of the bound, a window
	// Handlers that wait for others to start would wait for ever: if none ends for so long, one more may start.
	standstillMax = time.Millisecond
)

func newInService(workers, parallel int, adapts bool) inService {
	return inService{max: workers, limit: workers, parallel: parallel, adapts: adapts}
}

// start counts one more, and reports whether it has a CPU to itself.
func (s *inService) start() (alone bool) {
	s.now++
	return s.now <= s.parallel
}

// full reports whether no more may start.
func (s *inService) full(now clock.Time) bool {
	switch {
	case s.now < s.limit:
		return false
	case s.limit < s.max && now.Sub(s.ended) > standstillMax:
		s.limit++
		s.ended = now
		return false
	}
	s.reached = true
	return true
}

// end counts one less, at now. It took so long, where requests of its method take base alone; zero = not known.
func (s *inService) end(now clock.Time, base, took time.Duration) {
	s.now--
	s.ended = now
	if base == 0 || !s.adapts {
		return
	}
	s.expected += base
	s.took += took
	if s.completed++; s.completed < windowOf {
		return
	}
	switch {
	case s.took > stretchMax*s.expected+windowOf*stretchFree:
		s.limit = max(s.limit-max(s.limit/decreaseShare, 1), s.parallel+1)
	case s.reached:
		s.limit = min(s.limit+1, s.max)
	}
	s.expected, s.took, s.completed, s.reached = 0, 0, 0, false
}
