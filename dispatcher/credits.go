package dispatcher

import (
	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// SessionCredit is what one end has in its books about the credits of one session. When nothing is under way and no packet was lost since the
// last answer, both ends have the same.
type SessionCredit struct {
	Session uint32 // as the server calls it; 0 = not registered yet
	// Dispatcher is which one of the server's has the session: each has its own, so only the two together name one.
	Dispatcher int
	Limit      uint64 // requests below this number may be sent
	Next       uint64 // client: the number of its next request; server: the highest that it has seen
	Seq        uint32 // of the limit
	Lapsed     bool   // the lease ran out: what was unused has been taken back, or is not used any more
	// Waiting is the number of calls that wait for a credit; a server knows of none.
	Waiting int
	// Outstanding is the number of requests that were sent and not answered, as far as this end knows.
	Outstanding int
}

// Credit is the client's side of the session's credits.
func (s *Session) Credit() SessionCredit {
	return SessionCredit{
		Session: uint32(s.remote), Dispatcher: session.Owner(s.conn.Remote), Limit: s.gate.Limit(), Next: s.gate.Next(), Seq: s.gate.Seq(), Lapsed: s.gate.Forgotten(),
		Waiting: s.waiting.Len(), Outstanding: s.out.Len(),
	}
}

// EachCredit calls f with the server's side of the credits of each of its sessions, in no order. It takes time in proportion to
// the sessions.
func (d *Dispatcher) EachCredit(f func(SessionCredit)) {
	if d.server.ledger == nil {
		return
	}
	d.server.peers.Each(func(place uint32) {
		at := credit.Session(place)
		limit, seq := d.server.ledger.Limit(at)
		f(SessionCredit{
			Session: uint32(d.server.peers.ID(place)), Dispatcher: int(d.cfg.Owner),
			Limit: limit, Next: d.server.ledger.Sent(at), Seq: seq,
			Lapsed: d.server.ledger.Lapsed(at), Outstanding: int(d.server.ledger.Pending(at)),
		})
	})
}
