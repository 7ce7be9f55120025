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
//		below.Ask(0, Ask{Service: ms, Deadline: h.Left(), Done: func(o *Observation) { h.Resume(o.Call.Outcome == dispatcher.OutcomeOK) }})
//	}})
//
// To make a call costs the machine nothing; its answer is received like any other packet.
type Handling struct {
	Work Work // what the request's call says of itself
	// Request may be looked at until Resume.
	Request *dispatcher.Request

	job  *job
	life int
	over bool
	ok   bool
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
	if h.over {
		return
	}
	h.over, h.ok = true, ok
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
	if !h.ok {
		j.request.Status, j.at = wire.StatusHandlerError, len(j.steps)
	}
	m.ready.put(j)
	m.assign()
}
