package dispatcher

import "fmt"

// Audit checks what must always hold: the ledger's sums, that every request and every call is in exactly one place, and that the
// counters say so. It takes time in proportion to the sessions, and changes nothing.
func (d *Dispatcher) Audit() error {
	if err := d.auditCalls(); err != nil || d.server.ledger == nil {
		return err
	}
	if err := d.auditRequests(); err != nil {
		return err
	}
	return d.server.ledger.Audit()
}

// auditCalls checks the calling side: calls = outcomes + live ones.
func (d *Dispatcher) auditCalls() error {
	live, held := uint64(0), 0
	for _, s := range d.caller.sessions {
		if s == nil {
			continue
		}
		if s.heldRank != 0 {
			held++
		}
		refused, outstanding := 0, 0
		s.out.Each(func(c *Call) {
			outstanding++
			if c.state == callRefused {
				refused++
			}
		})
		if refused != int(s.refused) || outstanding != s.out.Len() {
			return fmt.Errorf("dispatcher: session %x counts %d calls and %d refused, has %d and %d",
				uint32(s.local), s.out.Len(), s.refused, outstanding, refused)
		}
		live += uint64(s.waiting.Len() + outstanding)
	}
	for _, c := range d.caller.conns {
		n, err := c.invitation.audit()
		if err != nil {
			return err
		}
		held -= n
	}
	if held != 0 {
		return fmt.Errorf("dispatcher: %d sessions too many are held back, or on no list", held)
	}
	if d.stats.Calls != d.stats.Ended()+live {
		return fmt.Errorf("dispatcher: %d calls, %d have ended, %d live", d.stats.Calls, d.stats.Ended(), live)
	}
	if armed := d.caller.timers.Len(); armed != int(live) {
		return fmt.Errorf("dispatcher: %d timers for %d calls", armed, live)
	}
	return nil
}

// auditRequests checks the serving side: offered = admitted + rejected at the door, and so on.
func (d *Dispatcher) auditRequests() error {
	s, n := &d.server, &d.stats
	if door := n.RejectedAll() - n.RejectedLate; n.Offered != n.Admitted+door {
		return fmt.Errorf("dispatcher: %d offered, %d admitted, %d rejected at the door", n.Offered, n.Admitted, door)
	}
	if n.Admitted != n.Completed+n.RejectedLate+n.Abandoned+uint64(d.Pending()) {
		return fmt.Errorf("dispatcher: %d admitted, %d completed, %d rejected later, %d abandoned, %d pending",
			n.Admitted, n.Completed, n.RejectedLate, n.Abandoned, d.Pending())
	}
	kept, pending := 0, 0
	for _, t := range s.tables {
		if t == nil || t.place == 0 {
			continue
		}
		kept += t.Live()
		t.Each(func(*Request) { pending++ })
		if peer := s.peers.At(uint32(t.place)); s.tables[peer.Slots] != t {
			return fmt.Errorf("dispatcher: the table of session %d belongs to another", t.place)
		}
	}
	// A request object is on a slot, or runs though nobody waits for it; one that is pending is queued or runs.
	orphans := d.Pending() - pending
	if orphans < 0 || d.Queued() > pending || s.pool.lent != kept+orphans {
		return fmt.Errorf("dispatcher: %d request objects in use, %d on slots, %d of them pending, %d queued, %d in service",
			s.pool.lent, kept, pending, d.Queued(), s.inService.now)
	}
	if parked := d.parked(); parked != s.parked {
		return fmt.Errorf("dispatcher: %d requests wait for a bound of their methods, counted are %d", parked, s.parked)
	}
	if p := s.ledger.Totals().Pending; p < uint64(pending) || p > uint64(d.Pending()) {
		return fmt.Errorf("dispatcher: the ledger counts %d requests pending, %d are, %d with abandoned ones", p, pending, d.Pending())
	}
	return nil
}

// parked counts those that wait for their methods' own bounds.
func (d *Dispatcher) parked() (n int) {
	for _, m := range d.server.bounded {
		n += m.parked.live
	}
	return n
}
