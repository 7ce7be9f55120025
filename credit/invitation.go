package credit

import (
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Inviter is a Controller that lets clients without a credit send some of their calls all the same.
//
// Where each call is of another client, none of them holds a credit when it calls. Each would have to ask, and be told, for each call: of 1,000,000 clients
// at twice the capacity, that left 74 % of it, for four packets a request. And who may not send need not say anything, if all are told what share may. So
// the answers, which leave anyway, carry the share; each call draws a rank, and goes if the share covers it. DAGOR (SoCC 2018) sheds by such a level;
// here it takes the place of a question, for calls that have no credit, while credits are for clients that call again and again.
type Inviter interface {
	// Invited is the share of such calls, in 1/InvitedAll, if a request that arrives now is going to wait so long. It is 1 at least: who is never invited
	// would not find out that times have changed. Zero, always, is for a scheme that invites nobody.
	Invited(ahead time.Duration) uint8
}

// InvitedAll is the share that is all calls: they draw their ranks from 1 to InvitedAll.
const InvitedAll = 127

// InvitedBeside is how many requests a session may have at the server already when it sends one more without a credit, if that one is of the highest level;
// else it is none. What waits at its client for an answer to come is later by a whole queueing delay, and of the highest level nothing should be: of 100 clients with a call
// of it each 133 ms, whose requests stay 80 ms, 0.18 % of these calls were late with none beside, 0.02 % with one, 0.01 % with three.
const InvitedBeside = 3

// Settings of Breakwater's invitation.
const (
	// openMax is the share at the target delay when there is no overload: all are invited below half the target.
	openMax = 0.5
	// openGain is how fast the share moves, for each update and target of distance. It is slow beside what the delay does to the share at once: together they
	// settle without swinging, which a share that followed the delay alone would not.
	openGain = 0.005
	// openIdle is how much faster it grows when nothing waits: after a long request the share is wrong, and the server idle.
	openIdle = 9
)

// invite adapts the share, by the delay's distance from its target in targets.
func (b *Breakwater) invite(excess float64) {
	if b.config.Uninvited {
		return
	}
	if excess < 0 {
		square := excess * excess
		fourth := square * square
		excess *= 1 + openIdle*fourth*fourth // next to nothing until the queue is nearly empty
	}
	// Beyond twice the target the door is shut, and the delay says how long that lasts, and nothing about the share.
	b.open = min(max(b.open*(1-openGain*min(excess, 1)), 1.0/InvitedAll), openMax)
}

// leavesOut reports whether the server has had to leave calls out. Then idle credits are worth nothing to those who hold them: each is a call that may
// come at any time, when the share says that it should not.
func (b *Breakwater) leavesOut() bool { return !b.config.Uninvited && b.open < openMax }

// Invited is the share for what is ahead: the whole one at the target, none at twice of it, when the door shuts, and the more the less is ahead, so that those
// who were left out are there before the server idles.
func (b *Breakwater) Invited(ahead time.Duration) uint8 {
	if b.config.Uninvited {
		return 0
	}
	targets := float64(ahead) / float64(b.config.TargetDelay)
	share := 2 - targets
	if targets < 1 {
		share = 1 / max(targets, 1.0/InvitedAll)
	}
	return uint8(min(max(math.Ceil(InvitedAll*b.open*share), 1), InvitedAll))
}

// invites reports whether the scheme invites anybody. Invitations know no weights, so where these differ, clients wait for their turn.
func (l *Ledger) invites() bool { return l.inviter != nil && l.weights == l.active }

// Invited is the share of the calls without a credit that clients are told they may send: see Inviter; zero = the scheme invites nobody.
func (l *Ledger) Invited(ahead time.Duration) uint8 {
	if !l.invites() {
		return 0
	}
	return l.inviter.Invited(ahead)
}

// numbersEnd is beyond every running number that a session can come to: at a million a second, in 100,000 years.
const numbersEnd = 1 << 62

// Invite reports a request that was sent without a credit, before Arrive: its session waits for no other answers than beside, zero or InvitedBeside. open is
// whether the door is. If so, the session gets the one credit that Arrive then finds: no more than one, so that a client which invites itself has no more at the
// server than one with a single credit, or a few. If not, it is listed as drained, with demand, and gets one in its turn.
//
// It changes nothing if the session has a credit for this number, or more requests pending after all, or has sent later ones.
//
// A client numbers each request that it sends, and of those without a credit some are refused or lost. So the numbers before this one are void, and void is
// true: the caller must let none of them run any more, but for the last beside ones, which may be under way.
func (l *Ledger) Invite(now clock.Time, s Session, number uint64, open bool, beside uint16) (void bool) {
	l.check()
	e := l.at(s)
	if e == nil || e.pending > beside || number < max(e.sent, e.told()) || number >= numbersEnd {
		return false
	}
	l.busy = true
	l.unlist(e)
	l.asleep(e)
	l.issued -= e.unused()
	e.sent = number
	if open && l.invites() {
		l.issued++
		e.setLimit(number + 1)
		e.seen = now
	} else {
		e.setLimit(number)
		e.demand = max(e.demand, 1)
		l.list(s, e)
	}
	l.check()
	return true
}
