package faultsim

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Signature says what kind of violation a run ended with, without its times and numbers; "" = none. While a plan is shrunk it must keep failing for the
// reason that it failed for.
func (r *Result) Signature() string {
	if !r.Failed() {
		return ""
	}
	text, _, _ := strings.Cut(r.Violations[0], "\n")
	_, text, _ = strings.Cut(text, ": ")
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c == '.' {
			return -1
		}
		return c
	}, text)
}

// Shrink makes a failing plan as short as it can, by trying at most so many others, and returns the shortest that still fails in the same way. If that is the
// plan itself, or if it does not fail, it comes back as it is. The same plan shrinks to the same one.
func Shrink(ctx context.Context, plan Plan, tries int) (Plan, error) {
	return shrink(ctx, plan, tries, Play)
}

// shrinker looks for a shorter plan.
type shrinker struct {
	best  Plan
	tries int // left
	fails func(Plan) bool
}

func shrink(ctx context.Context, plan Plan, tries int, run func(context.Context, Plan) (*Result, error)) (Plan, error) {
	r, err := run(ctx, plan)
	if err != nil || !r.Failed() {
		return plan, err
	}
	s := &shrinker{best: plan, tries: tries}
	s.fails = func(p Plan) bool {
		other, err := run(ctx, p)
		return err == nil && other.Signature() == r.Signature()
	}
	for shorter := true; shorter && s.tries > 0; {
		before := s.tries
		shorter = s.pass(ctx)
		if s.tries == before {
			break
		}
	}
	return s.best, ctx.Err()
}

// try takes a plan if it still fails, and reports that.
func (s *shrinker) try(p Plan) bool {
	if s.tries == 0 || p.Validate() != nil {
		return false
	}
	s.tries--
	if !s.fails(p) {
		return false
	}
	s.best = p
	return true
}

// pass tries everything once, what takes most away first.
func (s *shrinker) pass(ctx context.Context) (shorter bool) {
	for _, step := range []func() bool{
		func() bool { return thin(s, func(p *Plan) *[]Fault { return &p.Faults }) },
		func() bool { return thin(s, func(p *Plan) *[]Call { return &p.Calls }) },
		func() bool { return thin(s, func(p *Plan) *[]Close { return &p.Closes }) },
		s.compact, s.plain, s.shorten,
	} {
		if ctx.Err() == nil && step() {
			shorter = true
		}
	}
	return shorter
}

// thin takes elements out of a list: halves, then quarters, down to single ones (Zeller's delta debugging).
func thin[E any](s *shrinker, list func(*Plan) *[]E) (shorter bool) {
	for size := len(*list(&s.best)); size > 0; size /= 2 {
		for at := 0; at < len(*list(&s.best)); {
			p := s.best
			all := *list(&p)
			*list(&p) = slices.Concat(all[:at], all[min(at+size, len(all)):])
			if s.try(p) {
				shorter = true
			} else {
				at += size
			}
		}
	}
	return shorter
}

// compact leaves out sessions and hosts that do nothing: the sessions from some number on, or one in the middle, whose place the last one takes.
func (s *shrinker) compact() (shorter bool) {
	for sessions := s.best.Sessions / 2; sessions > 0; sessions /= 2 {
		for s.best.Sessions-sessions >= 1 && s.try(s.best.withSessions(s.best.Sessions-sessions)) {
			shorter = true
		}
	}
	for s.best.Hosts > 1 {
		p := s.best
		p.Hosts--
		if !s.try(p) {
			break
		}
		shorter = true
	}
	return shorter
}

// withSessions is the plan with fewer sessions; what those did that are gone, others do.
func (p Plan) withSessions(n int) Plan {
	p.Sessions, p.Hosts = n, min(p.Hosts, n)
	p.Calls, p.Closes = slices.Clone(p.Calls), slices.Clone(p.Closes)
	for i := range p.Calls {
		p.Calls[i].Session %= n
	}
	for i := range p.Closes {
		p.Closes[i].Session %= n
	}
	return p
}

// plain takes away what makes the machines special.
func (s *shrinker) plain() (shorter bool) {
	for _, change := range []func(*Plan){
		func(p *Plan) { p.Poller = false },
		func(p *Plan) { p.CPUs = 1 },
		func(p *Plan) { p.InService = 0 },
		func(p *Plan) { p.Slots = 0 },
		func(p *Plan) { p.Waiting = 0 },
		func(p *Plan) { p.Ring = 0 },
		func(p *Plan) { p.Cost = 0 },
		func(p *Plan) { p.Jitter = 0 },
		func(p *Plan) { p.NoPacking = false },
		func(p *Plan) { p.Checked = false },
		func(p *Plan) { p.RTT = Duration(10 * time.Microsecond) },
		func(p *Plan) { p.Service = Duration(10 * time.Microsecond) },
	} {
		p := s.best
		change(&p)
		if !p.equal(&s.best) && s.try(p) {
			shorter = true
		}
	}
	return shorter
}

// equal reports whether two plans have the same machines.
func (p *Plan) equal(q *Plan) bool {
	return p.Poller == q.Poller && p.CPUs == q.CPUs && p.InService == q.InService && p.Slots == q.Slots &&
		p.Waiting == q.Waiting && p.Ring == q.Ring && p.Cost == q.Cost && p.Jitter == q.Jitter && p.NoPacking == q.NoPacking && p.Checked == q.Checked && p.RTT == q.RTT && p.Service == q.Service
}

// shorten makes times shorter: of each fault, and of the whole. Calls lose what is special about them.
func (s *shrinker) shorten() (shorter bool) {
	for i := range s.best.Faults {
		for {
			p := s.best
			p.Faults = slices.Clone(p.Faults)
			if p.Faults[i].For /= 2; p.Faults[i].For < Duration(time.Microsecond) || !s.try(p) {
				break
			}
			shorter = true
		}
	}
	for i := range s.best.Calls {
		for _, change := range []func(*Call){
			func(c *Call) { c.Cancel = 0 }, func(c *Call) { c.Deadline = 0 }, func(c *Call) { c.Service = 0 }, func(c *Call) { c.Session = 0 },
		} {
			p := s.best
			p.Calls = slices.Clone(p.Calls)
			if change(&p.Calls[i]); p.Calls[i] != s.best.Calls[i] && s.try(p) {
				shorter = true
			}
		}
	}
	if p := s.best.trimmed(); p.End < s.best.End && s.try(p) {
		shorter = true
	}
	return shorter
}

// trimmed is the plan without the time before its first event and behind its last.
func (p Plan) trimmed() Plan {
	first, last := p.End, Duration(0)
	mark := func(from, to Duration) { first, last = min(first, from), max(last, to) }
	for _, f := range p.Faults {
		mark(f.At, f.At+f.For)
	}
	for _, c := range p.Calls {
		mark(c.At, c.At)
	}
	for _, c := range p.Closes {
		mark(c.At, c.At)
	}
	if first > last {
		return p
	}
	p.Faults, p.Calls, p.Closes = slices.Clone(p.Faults), slices.Clone(p.Calls), slices.Clone(p.Closes)
	for i := range p.Faults {
		p.Faults[i].At -= first
	}
	for i := range p.Calls {
		p.Calls[i].At -= first
	}
	for i := range p.Closes {
		p.Closes[i].At -= first
	}
	p.End = last - first
	return p
}
