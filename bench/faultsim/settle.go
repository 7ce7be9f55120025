package faultsim

import (
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// How soon all must be well after the faults. The slowest timer of a client is 100 ms, and it takes two of them at worst: one for a packet that the last fault
// took, one for what its answer brings about.
const (
	settleWithin = 300 * time.Millisecond // beside the work that is left
	wakeWithin   = 300 * time.Millisecond
	hurryWithin  = 3 * time.Second
	sedaPause    = 500 * time.Millisecond // its lowest rate is two calls a second
	calm         = 5 * time.Millisecond   // for what is under way, and credits that are handed out in turn
	// The lease of credits is a second, and a sweep of all sessions takes another at most.
	collapseWithin = 3 * time.Second
)

// wait lets time pass until something is so, and reports whether it became so in time.
func (p *play) wait(most time.Duration, is func() bool) (took time.Duration, ok bool) {
	from := p.world.Elapsed()
	for !is() {
		if took = p.world.Elapsed() - from; took >= most {
			return took, false
		}
		p.world.Run(p.world.Elapsed() + lookEvery)
	}
	return p.world.Elapsed() - from, true
}

// forgetting is how long a packet lives. After that a server has only one number of what it answered: whoever asks for an answer that was lost, and could not ask
// sooner, gets none, and gives up in time.
const (
	forgetting = time.Second
	giveUp     = 10 * time.Second
)

// settle waits until each call has its outcome.
func (p *play) settle() {
	work := time.Duration(0)
	for _, c := range p.Calls {
		work += time.Duration(c.Service + 4*p.Cost)
	}
	most := settleWithin + work/time.Duration(p.CPUs)
	took, ok := p.wait(most, func() bool { return p.recent() == 0 })
	p.result.Settled = took
	if !ok {
		p.violate("%d calls have no outcome %v after the faults", p.recent(), took)
	}
	if took, ok = p.wait(giveUp, func() bool { return p.world.Checks().Pending() == 0 }); !ok {
		p.violate("%d calls of a second before the end have no outcome %v after it", p.world.Checks().Pending(), took)
	}
	p.audit()
}

// recent is the number of calls without an outcome that are not older than a packet.
func (p *play) recent() (n int) {
	for _, of := range p.pending {
		n += of
	}
	return n
}

// isRecent reports whether a call that was made at that time belongs to them.
func (p *play) isRecent(made time.Duration) bool { return made > time.Duration(p.End)-forgetting }

// lostMax is how often a session may learn that its server has died: once from a server that does not know the connection, and once from one that does
// not know the session.
const lostMax = 2

// round is one call of each session, tried again until it is answered.
type round struct {
	ask  sim.Ask
	busy []bool
	done []bool
	lost []int
	left int
	last []dispatcher.Outcome
}

// ended notes an outcome.
func (r *round) ended(o *sim.Observation) {
	r.busy[o.Client], r.last[o.Client] = false, o.Call.Outcome
	switch o.Call.Outcome {
	case dispatcher.OutcomeOK:
		if !r.done[o.Client] {
			r.done[o.Client] = true
			r.left--
		}
	case dispatcher.OutcomePeerLost:
		r.lost[o.Client]++
	}
}

// everybody has each session make a call, one after the other, until all have had theirs answered. It returns how long that took beyond what making them
// takes.
func (p *play) everybody(ask sim.Ask, most time.Duration, what string) (took time.Duration) {
	n := p.Sessions
	r := &round{ask: ask, busy: make([]bool, n), done: make([]bool, n), lost: make([]int, n), left: n, last: make([]dispatcher.Outcome, n)}
	p.ended = r.ended
	defer func() { p.ended = nil }()
	gap := 2 * (ask.Service + 4*time.Duration(p.Cost)) // half of what the slowest server can do
	took, ok := p.wait(most, func() bool {
		for i := range r.done {
			if !r.done[i] && !r.busy[i] {
				r.busy[i] = true
				p.source.Ask(i, ask)
				p.world.Run(p.world.Elapsed() + gap)
			}
		}
		return r.left == 0
	})
	for i := range r.done {
		if !r.done[i] {
			p.violate("session %d in fair weather: no %s after %v; the last one: %v", i, what, took, r.last[i])
		}
		if r.lost[i] > lostMax {
			p.violate("session %d in fair weather: lost its server %d times", i, r.lost[i])
		}
	}
	if ok {
		p.audit()
	}
	return took
}

// wake finds the session that is stalled.
func (p *play) wake() {
	most := wakeWithin
	if p.Scheme == baseline.SEDA {
		most += sedaPause
	}
	p.result.Awake = p.everybody(sim.Ask{Service: time.Microsecond}, most, "call was answered")
}

// hurry finds the one that is shut for calls with deadlines: by what it learnt of times in bad weather.
func (p *play) hurry() {
	deadline := 2 * time.Duration(p.SLO+p.Jitter+8*p.Cost)
	p.everybody(sim.Ask{Service: time.Microsecond, Deadline: deadline}, hurryWithin, "call with a deadline was answered")
}

// compare holds the books of each session's credits at both ends against each other.
func (p *play) compare() {
	held := Duration(0) // packets that the faults have held back
	for _, f := range p.Faults {
		held = max(held, f.By)
	}
	p.world.Run(max(p.world.Elapsed(), time.Duration(p.End+held)) + calm)
	books := make(map[uint32]dispatcher.SessionCredit)
	p.machine.Dispatcher().EachCredit(func(c dispatcher.SessionCredit) { books[c.Session] = c })
	for i := range p.Sessions {
		s := p.source.Session(i)
		if s == nil {
			p.violate("session %d is not open", i)
			continue
		}
		mine := s.Credit()
		theirs, known := books[mine.Session]
		if !known {
			p.violate("session %d: %+v; the server does not know it", i, mine)
			continue
		}
		if theirs.Lapsed { // taken back by the lease, which the client's own outruns
			continue
		}
		if mine != theirs {
			p.violate("session %d: %+v; at the server %+v", i, mine, theirs)
		}
	}
}

// collapse waits until everything idle is gone, and counts what is left.
func (p *play) collapse() {
	p.world.Run(p.world.Elapsed() + collapseWithin)
	p.audit()
	s := p.machine.Dispatcher().Snapshot()
	if s.Issued != 0 || s.Queued != 0 || s.InService != 0 {
		p.violate("%d credits are issued to nobody, %d requests queued, %d in service", s.Issued, s.Queued, s.InService)
	}
}

// leave closes all sessions. The server must know of none then, but for those of hosts that died, those whose end nobody could be told until the client gave
// that up, and those that a late first contact opened on a trusted network.
func (p *play) leave() {
	end := time.Duration(p.End)
	lost := func(f Fault) bool { return f.Kind == KillClient || f.Kind == KillServer && p.Trusted }
	if end > giveUp/2 || slices.ContainsFunc(p.Faults, lost) {
		return
	}
	for i := range p.Sessions {
		p.source.Close(i)
	}
	p.world.Run(p.world.Elapsed() + settleWithin + end) // what was closed long ago is told seldom
	p.audit()
	if s := p.machine.Dispatcher().Snapshot(); s.Sessions != 0 {
		p.violate("the server still knows %d sessions that were closed", s.Sessions)
	}
}
