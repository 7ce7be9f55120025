package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// descent finds how many requests may be in their handlers at once. What shows that too many wait there, for a device, a lock or each other, is
// that requests start in time and end too late. A lower bound may help; or they would be late in any case, and it only keeps CPUs idle. Nothing that is seen
// from outside of the handlers tells the one from the other, so it is tried: while more than one in lateMany is late the bound goes down, step by step, until
// goodput falls. Then the last step is taken back, or all of them if they brought nothing, and the next trial has to wait for twice as long.
//
// It needs to know neither what handlers wait for, nor what they take alone. A request without a deadline is never late.
//
// (docs/simulator.md, "Locks and devices", has what it is worth and what trials in vain cost. The bound that TCP Vegas would have, by the mean time in
// handlers against that of those which were alone, sees a device that all wait for, but not a lock that one in ten does: the mean hardly shows it.)
type descent struct {
	window window
	base   float64 // goodput when all were let in, per second
	late   bool    // too many were, in the last window; once may be noise
	trial  trial
	again  clock.Time // no trial before; after one in vain
	times  int        // as long as that took
	rise   rise
}

// trial is a way down.
type trial struct {
	on       bool
	began    clock.Time    // its first step
	from     int           // the bound before its last one,
	was      float64       // and goodput there
	least    float64       // goodput that there must be
	share    float64       // of the CPUs, which its last step left idle if handlers compute
	lasted   time.Duration // how long the last window before that took,
	each     time.Duration // and of that each completion
	settling bool          // what ends now began before the last step
	doubted  bool          // there was too little goodput in the last window
}

// rise is the way up.
type rise struct {
	step int  // by which the bound rises next,
	hold int  // after so many windows that allow it,
	held int  // of which these have gone by
	last bool // the bound rose last, and did not fall
}

const (
	spare = 2 // what waits in the queue needs as much of the budget as handlers that wait: these get one in so many parts of it

	// Of those in service
	growthMax = 4      // one in so many may have come in a window: else goodput is not yet what it will be;
	stepMax   = 7. / 8 // the largest step: none starts before as many have ended;
	nearMin   = 0.1    // and below one for every CPU the smallest
	nearMax   = 0.5    // and the largest.

	// Of the goodput before
	goodMin    = 0.85 // must stay. It also falls for want of calls: then nothing is lost by going back;
	gainMin    = 1.05 // with all let in, makes it worth to stay where a trial ended;
	releasedAt = 0.7  // of that too, with callers waiting: what was found is so no more.
	abortedAt  = 1.25 // A window that takes so many times as long leaves no doubt.

	timesMin  = 32   // trials in vain cost at most half of the goodput for a 32nd of the time,
	timesMax  = 1024 // and in the end nothing
	holdTight = 64   // windows before the bound rises where handlers take more than their part,
	holdMax   = 256  // and at the most: it is too high in one of so many
)

// ended counts a request that took so long and had so much left, and reports whether the window is over.
func (x *descent) ended(now clock.Time, took, left time.Duration, s *inService) bool {
	x.window.count(now, took, left)
	if x.window.completed < windowOf && !x.trial.on {
		return s.limit < s.max && x.window.calm(now)
	}
	return x.over(now, s)
}

// over reports whether enough was seen.
func (x *descent) over(now clock.Time, s *inService) bool {
	enough, elapsed := x.enough(s), now.Sub(x.window.began)
	if x.trial.on && float64(elapsed) > abortedAt*float64(max(x.trial.lasted, x.trial.each*time.Duration(enough))) {
		return true
	}
	return x.window.completed >= enough && elapsed > x.window.least()
}

// enough is how many completions tell whether goodput fell with the last step, and will tell whether it falls with the next.
func (x *descent) enough(s *inService) int {
	if x.trial.settling || s.limit > s.everyCPU() {
		return windowOf
	}
	share := 1.
	if x.trial.on {
		share = x.trial.share
	}
	if x.window.excess() > 0 {
		share = min(share, x.window.near())
	}
	return max(windowOf, int(windowNear/share/share))
}

// bound is the new bound, after a window.
func (x *descent) bound(now clock.Time, s *inService) int {
	w := x.window
	w.lasted = now.Sub(w.began)
	x.window = window{began: now, first: s.now, peak: s.now}
	if x.trial.settling {
		x.trial.settling = w.first > s.limit && s.now < w.first // those above it end; handlers that hang never do
		return s.limit
	}
	if x.lost(&w, s) {
		return x.back(now, s)
	}
	x.trial.doubted = false
	switch {
	case w.excess() > 0:
		begin := x.trial.on || x.late && now >= x.again
		x.late, x.rise.step = true, 0
		if begin && x.helps(&w, s) {
			return x.down(now, &w, s)
		}
		return s.limit
	case w.late*lateFew < w.completed && w.reached:
		x.trial.on, x.late, x.times = false, false, max(x.times-1, 0)
		return x.up(&w, s)
	}
	x.trial.on, x.late, x.rise.step = false, false, 0
	return s.limit
}

// helps reports whether a step down may help. It does not where no more are in service than there are CPUs, though more are let in: then none waits for anything but a CPU.
// Nor where nearly all are late, as when what they wait for is out of order: a low bound would be in its way when it is back. And nobody knows while their number grows.
func (x *descent) helps(w *window, s *inService) bool {
	return s.limit > 1 && (s.limit <= s.everyCPU() || w.peak > s.everyCPU()) && !w.hopeless() && s.now-w.first <= w.peak/growthMax
}

// lost reports whether there was less goodput than there must be.
func (x *descent) lost(w *window, s *inService) bool {
	if x.trial.on {
		return w.good() < x.trial.least || w.hopeless()
	}
	return s.limit < s.max && w.reached && w.good() < releasedAt*x.base
}

// back gives up a trial, or what an earlier one found, for want of goodput. Once may be noise.
func (x *descent) back(now clock.Time, s *inService) int {
	if !x.trial.doubted {
		x.trial.doubted = true
		return s.limit
	}
	t := x.trial
	x.trial, x.rise.step = trial{settling: true}, 0
	if !t.on {
		return s.max
	}
	x.times = min(max(2*x.times, timesMin), timesMax)
	x.again = now.Add(time.Duration(x.times) * now.Sub(t.began))
	if t.was > gainMin*x.base {
		return t.from
	}
	return s.max
}

// down makes a step. As long as there may be one in service for every CPU, nothing is lost by it unless handlers wait for what is nobody's load: it goes to where
// those that were late would have been in time, with something to spare, and goodput is held against that before the first step. Below that a step goes no further than
// it must, and has to prove itself.
func (x *descent) down(now clock.Time, w *window, s *inService) (limit int) {
	x.rise.fell()
	good, t := w.good(), &x.trial
	if !t.on {
		t.began, t.from, t.was, t.least = now, s.limit, good, goodMin*good
	}
	if s.limit == s.max {
		x.base = good
	}
	if s.limit > s.everyCPU() {
		limit = max(int(float64(w.peak)*max((1-w.excess())/spare, 1-stepMax)), s.everyCPU())
		limit = min(limit, s.limit-1)
	} else {
		limit = max(min(int(float64(s.limit)*(1-w.near())), s.limit-1), 1)
		t.share = float64(s.limit-limit) / float64(s.limit)
		t.from, t.was, t.least = s.limit, good, good*(1-t.share/2)
	}
	t.on, t.settling, t.lasted, t.each = true, true, w.lasted, w.lasted/time.Duration(w.completed)
	return limit
}

// up raises the bound, by more each time; but where there is not one for every CPU, little is too much.
func (x *descent) up(w *window, s *inService) int {
	r := &x.rise
	hold := r.hold
	if s.limit > s.everyCPU() && w.tight*lateFew > w.completed {
		hold = max(hold, holdTight)
	}
	if w.completed < windowOf { // and none was late: see windowMax
		hold = 0
	}
	if r.held++; r.held <= hold {
		return s.limit
	}
	if r.last {
		r.hold /= 2
	}
	r.held, r.last = 0, true
	if r.step = min(max(2*r.step, 1), s.max); s.limit < s.everyCPU() {
		r.step = 1
	}
	return min(s.limit+r.step, s.max)
}

// fell notes that the bound did. If it had only just risen it is held for twice as long from then on: it takes far longer to see that it is too high than that it might
// not be.
func (r *rise) fell() {
	if r.last {
		r.hold = min(max(2*r.hold, 1), holdMax)
	}
	r.held, r.last = 0, false
}
