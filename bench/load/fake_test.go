package load

import (
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// fakeServer is a FIFO server with one worker on a virtual clock that moves by tick at every yield. It answers in order,
// refuses when more than room requests wait, and can be made to misbehave. Runs against it are exact: no test here
// depends on how fast the machine is.
type fakeServer struct {
	now   clock.Time
	tick  time.Duration
	rtt   time.Duration
	room  int // zero is without bound
	queue []*Op
	busy  clock.Time // the worker is busy until then

	stallFrom, stallTo clock.Time        // answers due in between come at its end
	onIssue            func(op *Op) bool // true: it took care of the op
	sessions           []int             // in order of Issue
	works              []time.Duration
	timing             bool
}

// newFakeServer starts its clock at an instant that is not zero, since zero means unset.
func newFakeServer(tick time.Duration) *fakeServer {
	return &fakeServer{now: clock.Time(time.Hour), tick: tick}
}

// source is the server's clock, with every yield letting time pass.
func (s *fakeServer) source() timeSource {
	return timeSource{now: func() clock.Time { return s.now }, yield: s.turn}
}

// Issue queues the request.
func (s *fakeServer) Issue(session int, op *Op) {
	work, err := workload.DecodeWork(op.Payload)
	if err != nil {
		panic(err)
	}
	s.sessions = append(s.sessions, session)
	s.works = append(s.works, work)
	if s.onIssue != nil && s.onIssue(op) {
		return
	}
	if s.room > 0 && len(s.queue) >= s.room {
		op.Outcome, op.Reason, op.Finished = Rejected, 3, s.now.Add(s.rtt)
		op.Done()
		return
	}
	s.busy = max(s.busy, s.now).Add(work)
	op.Finished = s.busy.Add(s.rtt)
	if op.Finished >= s.stallFrom && op.Finished < s.stallTo {
		op.Finished = s.stallTo
	}
	if s.timing {
		op.Timed, op.Timing = true, Timing{1, 2, 3, 4, work}
	}
	s.queue = append(s.queue, op)
}

// turn lets time pass and answers what is due.
func (s *fakeServer) turn() {
	s.now = s.now.Add(s.tick)
	for len(s.queue) > 0 && s.queue[0].Finished <= s.now {
		op := s.queue[0]
		s.queue = s.queue[1:]
		if op.Deadline != 0 && op.Finished > op.Deadline {
			op.Outcome = Deadline
		}
		op.Done()
	}
}
