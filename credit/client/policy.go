package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Policy is the client's half of a scheme of overload control that is not content with credits: it may end a call before it is sent, and hold
// one back that has a credit. One value serves one session. All its methods are called by one owner, and allocate nothing.
type Policy interface {
	// Admit decides when a call is submitted; false ends it at once, unsent. priority is what its caller says, 0 if nothing; the
	// request carries what is returned.
	Admit(now clock.Time, priority uint8) (carried uint8, ok bool)
	// CanSend decides whether one more request may be sent, of which outstanding wait for an answer. If not, it is asked again at the
	// instant again, and after each answer; zero = only then, which is for a policy that always lets one be outstanding.
	CanSend(now clock.Time, outstanding int) (ok bool, again clock.Time)
	// Sent says that a request was sent: the first time, not again.
	Sent(now clock.Time)
	// Answered says what became of one that was sent.
	Answered(now clock.Time, a Answer)
	// Limits bound the session's queue. They are asked for once.
	Limits() Limits
}

// Answer is what a policy learns from the end of a request that was sent.
type Answer struct {
	Latency  time.Duration // since it was first sent
	Level    uint8         // the server's level, see package wire; zero = none
	Rejected bool          // the server refused it
	Lost     bool          // no answer came by its deadline
}

// Limits bound the queue of a session. The zero value bounds nothing beyond what the session does anyway.
type Limits struct {
	// Waiting is how many calls may wait; 0 = as many as the session is configured for.
	Waiting int
	// DropOldest ends the one that has waited longest when the queue is full, instead of refusing the new one.
	DropOldest bool
	// Expiry is how long a call may wait, besides what its deadline says; 0 = any time.
	Expiry time.Duration
	// Ask tells the server of each call that finds no credit, at once and in a message of its own; else the requests and the answers say enough.
	Ask bool
	// Quiet has a session that has demand and no credit wait for ProbeTimeMax before it says so unasked: the server wakes up who was drained. What was lost on
	// the network is then found out so late.
	Quiet bool
}
