package sim

import (
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Handling is a handler in a step of the kind StepAwait: it waits for something elsewhere, such as the calls that it has made to further servers, and has
// no CPU meanwhile. What it waits for ends by Resume. So a call graph is machines with a [Source] each, whose client host is the machine itself:
//
//	below := w.NewSource(leaf, SourceConfig{})
//	err := below.AddClients(middle.Host, 1)
//	... and in the plan of middle:
//	append(steps, Step{Kind: StepAwait, Begin: func(h *Handling) {
//		a := h.Ask()
//		a.Done = func(o *Observation) { h.Resume(o.Call.Outcome == dispatcher.OutcomeOK) }
//		below.Ask(0, a)
//	}})
//
// To make a call costs the machine nothing; its answer is received like any other packet.
type Handling struct {
	Work Work // what the request's call says of itself
	// Request may be looked at until Resume.
	Request *dispatcher.Request

	job    *job
	life   int
	over   bool
	status wire.Status
}

// Ask is a call as the handler makes it for its request: with what is left of the time and of the attempts, and as critical. One that has no time
// left has a nanosecond, and ends as expired.
func (h *Handling) Ask() Ask {
	r := h.Request
	a := Ask{Criticality: r.Criticality, AttemptsLeft: r.AttemptsLeft, Deadline: h.Left()}
	if a.Deadline < 0 {
		a.Deadline = 1
	}
	return a
}

// Left is what is left until the request's deadline; zero if it has none, and below zero if that has passed.
func (h *Handling) Left() time.Duration {
	if h.Request.Deadline == 0 {
		return 0
	}
	if left := h.Request.Deadline.Sub(h.job.m.w.now); left != 0 {
		return left
	}
	return -1
}

// Resume lets the handler go on with its next step, or, if what it waited for failed, return an error. Only the first one counts. It may be called at any
// time, also before Begin returns, and by a Done of a call.
func (h *Handling) Resume(ok bool) {
	status := wire.StatusOK
	if !ok {
		status = wire.StatusHandlerError
	}
	h.ResumeWith(status)
}

// ResumeWith is Resume with what the answer says; the next steps are only for wire.StatusOK.
func (h *Handling) ResumeWith(status wire.Status) {
	if h.over {
		return
	}
	h.over, h.status = true, status
	h.job.m.w.at(h.job.m.w.now, h)
}

// await begins a step that waits for something elsewhere.
func (m *Machine) await(j *job, s *Step) {
	s.Begin(&Handling{Work: decodeWork(j.request.Payload), Request: j.request, job: j, life: m.life})
}

// act is the end of the wait.
func (h *Handling) act(*World) {
	j, m := h.job, h.job.m
	if h.life != m.life {
		return
	}
	j.at++
	if h.status != wire.StatusOK {
		j.request.Status, j.at = h.status, len(j.steps)
	}
	m.ready.put(j)
	m.assign()
}
