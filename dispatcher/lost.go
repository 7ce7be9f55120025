package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// lost ends a connection whose server does not know it any more: what was sent has an unknown outcome, what waits is
// sent to the new boot.
func (d *Dispatcher) lost(at *dialed) {
	d.stats.PeersLost++
	d.abandon(at.Conn)
	at.Reset(d.conns.NextID(at.Conn))
	at.doubtful = at.HasToken
	at.share = 0
	for _, s := range d.caller.sessions {
		switch {
		case s == nil || s.conn != at:
		case s.closed: // nothing is left there to say farewell to
			d.bury(s)
		default:
			d.loseSession(s)
		}
	}
}

// loseSession ends what is outstanding and makes the session register anew. Also what was last refused for want of a credit has
// an unknown outcome: another copy of it may have run before the server went.
func (d *Dispatcher) loseSession(s *Session) {
	d.endAll(d.loseCalls(nil, s))
	d.pump(s)
}

// loseCalls takes what is outstanding out of a session that starts anew, and adds it to a list for endAll.
func (d *Dispatcher) loseCalls(lost *Call, s *Session) *Call {
	s.out.Each(func(call *Call) { lost = d.endLater(lost, call, OutcomePeerLost) })
	s.reset(d)
	return lost
}

// onSessionGone handles a server that has forgotten one session of a connection it knows, or confirms the end of one.
func (d *Dispatcher) onSessionGone(c *session.Conn, g wire.Gone) {
	if g.Session == 0 || g.Connection != c.Remote {
		return
	}
	for _, s := range d.caller.sessions {
		switch {
		case s == nil || s.conn.Conn != c || s.remote != g.Session:
		case s.closed:
			d.bury(s)
		default:
			// The connection stays, so the handle must not: a late answer would be taken for that of another call.
			d.nextHandle(s)
			d.loseSession(s)
		}
	}
}

// mayHaveRun reports whether a server that asks for another token may be the successor of one that ran the call: a token that was good
// is refused only by another boot (or after ten minutes). A doubtful token is one of which the peer that gave it knows nothing any
// more; it has been refused now, and so was the only packet that went out with it.
func (c *Call) mayHaveRun(doubtful bool) bool { return c.proven > 1 || c.proven == 1 && !doubtful }
