package target

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Issuer drives sessions of one client: package load's virtual clients.
type Issuer struct {
	client   *sw.Client
	sessions []*sw.Session
	method   sw.MethodID
	log      Log // of outcomes; nil = none

	criticality sw.Criticality
	repeatable  bool

	free atomic.Pointer[call]
}

// Log takes note of requests, for a checker apart from the runtime. [checker.Log] is one. Its methods may be called from any goroutine.
type Log interface {
	Mark() uint64               // names the next request, from 1 on
	Ended(checker.Ending)       // an outcome was told
	Executed(checker.Execution) // a handler began
}

// call is a runtime call that carries an op. Taken on the generator's goroutine, given back on the endpoint's loop.
type call struct {
	sw.Call
	op     *load.Op
	next   *call
	ending checker.Ending // with a log
}

var _ load.Issuer = (*Issuer)(nil)

// NewIssuer opens further sessions until the client has the given number.
func NewIssuer(client *sw.Client, sessions int, method string) (*Issuer, error) {
	i := &Issuer{client: client, sessions: make([]*sw.Session, 0, sessions), method: sw.MethodOf(method)}
	i.sessions = append(i.sessions, &client.Session)
	for len(i.sessions) < sessions {
		s, err := client.NewSession()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening session %d: %w", len(i.sessions), err), i.Close())
		}
		i.sessions = append(i.sessions, s)
	}
	return i, nil
}

// SetMethod changes the method that is called from the next request on.
func (i *Issuer) SetMethod(method string) { i.method = sw.MethodOf(method) }

// SetClass says how much the requests matter from the next one on, and whether they may be tried again and hedged, as the client is configured.
func (i *Issuer) SetClass(c sw.Criticality, repeatable bool) {
	i.criticality, i.repeatable = c, repeatable
}

// SetLog makes the issuer mark each request from the next one on, and write its outcome into the log. Payloads must then have
// at least 16 bytes.
func (i *Issuer) SetLog(log Log) { i.log = log }

// Sessions are the sessions that it drives.
func (i *Issuer) Sessions() []*sw.Session { return i.sessions }

// Close closes the sessions, but for the client's own.
func (i *Issuer) Close() error {
	var errs []error
	for _, s := range i.sessions[1:] {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Issue starts the op's request.
func (i *Issuer) Issue(session int, op *load.Op) {
	c := i.take()
	c.op = op
	if i.log != nil {
		c.ending = i.mark(op.Payload, op.Due, op.Deadline)
	}
	c.Method, c.Payload, c.Deadline, c.Reply = i.method, op.Payload, op.Deadline, c.Reply[:0]
	c.Criticality, c.Repeatable = i.criticality, i.repeatable
	i.sessions[session].Start(&c.Call)
}

// Round has each session make one call without work, one after the other, and returns an error for the first that is not answered.
func (i *Issuer) Round() error {
	ended := make(chan struct{}, 1)
	c := sw.Call{Method: i.method, Payload: make([]byte, markEnd), Done: func(*sw.Call) { ended <- struct{}{} }}
	for n, s := range i.sessions {
		var ending checker.Ending
		if i.log != nil {
			ending = i.mark(c.Payload, 0, 0)
		}
		s.Start(&c)
		<-ended
		if i.log != nil {
			ending.Finished, ending.Outcome = clock.Now(), fate(c.Outcome())
			i.log.Ended(ending)
		}
		if c.Outcome() != sw.OutcomeOK {
			return fmt.Errorf("the call of session %d of %d ended %v", n+1, len(i.sessions), c.Outcome())
		}
		c.Reply = c.Reply[:0]
	}
	return nil
}

// mark gives the request of a payload a mark, and begins its record.
func (i *Issuer) mark(payload []byte, due, deadline clock.Time) checker.Ending {
	e := checker.Ending{Mark: i.log.Mark(), Due: due, Issued: clock.Now(), Deadline: deadline}
	binary.BigEndian.PutUint64(payload[markStart:markEnd], e.Mark)
	return e
}

// take pops a call off the free list. Only the generator takes, so the list's top cannot be taken and put back between
// the load and the swap.
func (i *Issuer) take() *call {
	for {
		c := i.free.Load()
		if c == nil {
			c = &call{}
			c.Done = func(*sw.Call) { i.done(c) }
			return c
		}
		if i.free.CompareAndSwap(c, c.next) {
			return c
		}
	}
}

// done reports the outcome and gives the call back.
func (i *Issuer) done(c *call) {
	op := c.op
	op.Outcome, op.Timed = outcome(c.Outcome()), false
	if op.Outcome == load.OK {
		t := c.Timing()
		op.Timed, op.Timing = true, load.Timing(t)
	}
	op.Reason = uint8(c.Reason())
	if i.log != nil {
		op.Finished = clock.Now()
		c.ending.Finished, c.ending.Outcome = op.Finished, fate(c.Outcome())
		i.log.Ended(c.ending)
	}
	c.op = nil
	for {
		c.next = i.free.Load()
		if i.free.CompareAndSwap(c.next, c) {
			break
		}
	}
	op.Done()
}

// outcome maps the runtime's outcomes to those of package load.
func outcome(o sw.Outcome) load.Outcome {
	switch o {
	case sw.OutcomeOK:
		return load.OK
	case sw.OutcomeRejected:
		return load.Rejected
	case sw.OutcomeExpired, sw.OutcomeQueueFull, sw.OutcomeThrottled, sw.OutcomeBreakerOpen:
		return load.Expired
	case sw.OutcomeDeadline:
		return load.Deadline
	case sw.OutcomePeerLost:
		return load.PeerLost
	default:
		return load.Failed
	}
}

// fate maps the runtime's outcomes to what they say about the execution.
func fate(o sw.Outcome) checker.Outcome {
	switch o {
	case sw.OutcomeOK:
		return checker.OK
	case sw.OutcomeHandlerError, sw.OutcomePanic, sw.OutcomeReplyTooLarge, sw.OutcomeUnavailable:
		return checker.Failed
	case sw.OutcomeRejected:
		return checker.Rejected
	case sw.OutcomeExpired, sw.OutcomeQueueFull, sw.OutcomeTooLarge, sw.OutcomeThrottled, sw.OutcomeBreakerOpen:
		return checker.NeverSent
	default: // the deadline, a lost peer, or the end of the session
		return checker.Unknown
	}
}

// ReasonName names a refusal's reason in results.
func ReasonName(reason uint8) string { return sw.RejectReason(reason).String() }
