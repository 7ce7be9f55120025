package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// Next takes the oldest request that is still worth running, or the newest where Admission says so; nil when none waits, or when as many are in service as
// allowed. What waited too long to be answered in time is rejected here, unstarted.
func (d *Dispatcher) Next(now clock.Time) *Request {
	d.now = now
	s := &d.server
	for !s.inService.full(now) {
		req := d.take()
		if req == nil {
			return nil
		}
		if d.startable(req) {
			return req
		}
	}
	return nil
}

// Start is Next for a request that was queued then, if it still waits: for a shell that has been told of it by Queued. Nil if it does not, is not worth
// running any more, or if as many are in service as allowed: then it waits on.
func (d *Dispatcher) Start(now clock.Time, req *Request, queued clock.Time) *Request {
	d.now = now
	s := &d.server
	if req.state != requestQueued || req.enqueued != queued || req.Method.admit.InService.Full() || s.inService.full(now) {
		return nil
	}
	d.dequeue(req)
	if !d.startable(req) {
		return nil
	}
	return req
}

// startable puts a request that was taken from the queue in service, or rejects it.
func (d *Dispatcher) startable(req *Request) bool {
	s := &d.server
	s.overrun.sample(d.now.Sub(req.enqueued), req.expected)
	if !d.stillInTime(req) {
		d.refuseQueued(req, credit.Expired, wire.RejectExpired)
		return false
	}
	if s.dequeuer != nil && !s.dequeuer.Dequeue(d.now, d.now.Sub(req.arrival), s.queue.live+d.backlog()) {
		d.refuseQueued(req, credit.Rejection, wire.RejectOverloaded)
		return false
	}
	if !s.codel.Dequeue(d.now, d.now.Sub(req.arrival), s.queue.live+d.backlog()) {
		s.door.Refuse(admit.ReasonCoDel, 0)
		d.refuseQueued(req, credit.Rejection, wire.RejectOverloaded)
		return false
	}
	req.Method.admit.InService.Start()
	req.state = requestRunning
	s.inService.start()
	return true
}

// backlog is the number of packets that wait, where it is known.
func (d *Dispatcher) backlog() (count int) {
	if d.server.Backlog != nil {
		_, count = d.server.Backlog(d.now)
	}
	return count
}

// needs is the least that must be left of a request's budget for its answer to be in time: its service, and its way back. The
// round trip stands for the way back; what it is too long covers the client's own reception.
func (d *Dispatcher) needs(m *Method) time.Duration { return m.admit.Age.Expected() + d.rtt.Smoothed() }

// refuseQueued rejects a request that was taken from the queue, unstarted.
func (d *Dispatcher) refuseQueued(req *Request, kind credit.Kind, reason wire.RejectReason) {
	place := req.session
	d.server.ledger.Answer(d.now, place, kind)
	d.stats.Rejected[reason]++
	d.stats.RejectedLate++
	peer := d.server.peers.At(uint32(place))
	no := d.refusal(reason)
	d.tableFor(peer, place).Reject(d.now, req.number, req.slot, no)
	if c := d.connOf(place); c != nil {
		d.reject(c, peer, place, req.number, req.slot, no)
	}
	d.recycle(req)
}

// Complete answers a request that Next gave out. Started, Finished, Status and Reply are what the worker left.
func (d *Dispatcher) Complete(now clock.Time, req *Request) {
	d.now = now
	s := &d.server
	service := req.service()
	req.Method.admit.Age.Sample(service)
	req.Method.admit.InService.Done()
	s.inService.end(now, service, d.left(req))
	s.service.Sample(service)
	d.stats.Completed++
	d.stats.Busy += service
	d.stats.RequestWait += req.Started.Sub(req.enqueued)
	place := req.session
	if s.peers.Serial(uint32(place)) != req.serial { // its session is gone, and the place may be another's
		d.recycle(req)
		return
	}
	kind := credit.Success
	if req.Status != wire.StatusOK {
		kind = credit.Failure
		d.stats.Failed++
	}
	if len(req.Reply) > d.ReplyMax() {
		req.Status, req.Reply = wire.StatusTooLarge, nil
	}
	_, before := s.ledger.Limit(place)
	limit, seq := s.ledger.Answer(now, place, kind)
	peer, c := s.peers.At(uint32(place)), d.connOf(place)
	table := d.tableOf(peer)
	var kept *[]byte
	if req.state != requestOrphan && table != nil {
		kept = table.Answer(req.number, req.slot)
	}
	if kept == nil {
		d.recycle(req)
		if seq != before { // no answer tells it
			d.creditUpdate(c, place, limit, seq)
		}
		return
	}
	table.heard = now // the reply is kept for one packet life, however long the handler took
	d.reply(c, peer, req, kept)
	d.recycle(req)
}

// left is what a request had of its budget when it started, but for its way back; zero = it has no deadline.
func (d *Dispatcher) left(req *Request) time.Duration {
	if req.Deadline == 0 {
		return 0
	}
	return max(req.Deadline.Sub(req.Started)-d.rtt.Smoothed(), 1)
}

// ReplyMax is the largest payload of a reply in bytes.
func (d *Dispatcher) ReplyMax() int {
	return d.port.PayloadMax() - wire.OverheadBytes - wire.ReplyBytes
}

// ExpectedService is the learnt mean service time over all methods; zero before the first.
func (d *Dispatcher) ExpectedService() time.Duration { return d.server.service.Mean() }

func (d *Dispatcher) connOf(place credit.Session) *session.Conn {
	index, ok := d.server.peers.Conn(uint32(place))
	if !ok {
		return nil
	}
	return d.conns.At(index)
}

// probe answers a client that has demand and no credit.
func (d *Dispatcher) probe(c *session.Conn, in inbound, p wire.Probe) {
	place, known := d.known(c, in, p.Session)
	if !known {
		d.sessionGone(c, p.Session)
	}
	if place == 0 {
		return
	}
	d.stats.Probes++
	d.tellCredit(c, in, place, p)
	if d.server.ledger.Asking() { // who asks for each credit should not wait for the next update of the pool as well
		d.wakeDrained()
	}
}

// tellCredit answers a probe if the session has credits that its client does not know of. If not, it will be granted one in its turn.
func (d *Dispatcher) tellCredit(c *session.Conn, in inbound, place credit.Session, p wire.Probe) {
	limit, seq, answer := d.server.ledger.Probe(d.now, place, uint64(p.Next), p.Seq, p.Demand, in.newer)
	if answer {
		d.creditUpdate(c, place, limit, seq)
	}
}

func (d *Dispatcher) creditUpdate(c *session.Conn, place credit.Session, limit uint64, seq uint32) {
	m := wire.CreditUpdate{Session: d.server.peers.At(uint32(place)).Handle, Limit: wire.Number(limit), Seq: seq}
	if o := d.room(c, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
		d.told()
		d.stats.CreditUpdates++
	}
}

// cancel answers a request that has not started; one that runs is told, and counts until its handler returns.
func (d *Dispatcher) cancel(c *session.Conn, in inbound, x wire.Cancel) {
	place, _ := d.known(c, in, x.Session)
	if place == 0 {
		return
	}
	peer := d.server.peers.At(uint32(place))
	table := d.tableOf(peer)
	if table == nil {
		return
	}
	state, req := table.Lookup(x.Number, x.Slot)
	if state != session.Pending {
		return
	}
	if req.state == requestRunning {
		if !req.Abandoned() {
			d.stats.Interrupted++
			req.abandon()
		}
		return
	}
	if req.state != requestQueued {
		return
	}
	no := d.refusal(wire.RejectCancelled)
	table.Reject(d.now, x.Number, x.Slot, no)
	d.unqueue(req)
	d.server.ledger.Answer(d.now, place, credit.Cancelled)
	d.stats.Rejected[wire.RejectCancelled]++
	d.stats.RejectedLate++
	d.reject(c, peer, place, x.Number, x.Slot, no)
}

// credits sizes the pool when its period is over, and grants to drained sessions.
func (d *Dispatcher) credits() {
	s := &d.server
	if !s.ledger.UpdateDue(d.now) {
		return
	}
	delay := d.Delay()
	d.stats.DelayMax = max(d.stats.DelayMax, delay)
	d.stats.DelaySum += delay
	d.stats.Updates++
	before := s.ledger.Controller().Pool()
	s.ledger.Update(d.now, credit.Signal{Delay: delay, RTT: d.rtt.Smoothed(), Service: s.service.Mean()})
	if s.ledger.Controller().Pool() < before {
		d.stats.Cuts++
	}
	d.tellPressure()
	d.wakeDrained()
}

// wakeDrained grants to drained sessions, a bounded number a turn.
func (d *Dispatcher) wakeDrained() {
	for range drainedGrantsTurn {
		place, limit, seq, ok := d.server.ledger.PopDrained(d.now)
		if !ok {
			return
		}
		if c := d.connOf(place); c != nil {
			d.creditUpdate(c, place, limit, seq)
		}
	}
}

// farewell ends a session at its client's wish. The answer is always the same, so that a client whose farewell or whose answer
// was lost can ask until it has one.
func (d *Dispatcher) farewell(c *session.Conn, in inbound, x wire.Deregister) {
	place, known := d.known(c, in, x.Session)
	if place != 0 {
		d.endRequests(uint32(place))
		d.server.ledger.Deregister(d.now, place)
		d.server.peers.End(uint32(place), c, in.number)
	}
	if place != 0 || !known {
		d.tellGone(c, x.Session)
	}
}

// endRequests gives up the requests of a session that ends: what is queued will not run, and what runs has nobody to answer.
func (d *Dispatcher) endRequests(place uint32) {
	peer := d.server.peers.At(place)
	table := d.tableOf(peer)
	if table == nil {
		return
	}
	table.Each(func(r *Request) {
		if r.state == requestQueued {
			d.unqueue(r)
			d.stats.Abandoned++
		} else {
			r.state = requestOrphan
			r.abandon()
		}
	})
	d.dropTable(peer, table)
}

// tableOf is the session's table of slots, or nil when it is idle.
func (d *Dispatcher) tableOf(peer *session.Peer) *slotTable {
	if peer.Slots == 0 {
		return nil
	}
	return d.server.tables[peer.Slots]
}

// tableFor is the session's table of slots, made when it has none.
func (d *Dispatcher) tableFor(peer *session.Peer, place credit.Session) *slotTable {
	if t := d.tableOf(peer); t != nil {
		return t
	}
	s := &d.server
	var index uint32
	if n := len(s.spare); n > 0 {
		index = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		index = uint32(len(s.tables))
		s.tables = append(s.tables, nil)
	}
	if s.tables[index] == nil {
		s.tables[index] = &slotTable{}
	}
	t := s.tables[index]
	t.place, t.heard = place, d.now
	peer.Slots = index
	return t
}

// dropTable frees a table with the answers it keeps: the session remembers one number.
func (d *Dispatcher) dropTable(peer *session.Peer, t *slotTable) {
	peer.Floor = max(peer.Floor, t.Next())
	index := peer.Slots
	peer.Slots, t.place = 0, 0
	if len(d.server.spare) < freeRequestsMax {
		t.Clear()
	} else {
		d.server.tables[index] = nil // a burst of sessions is over: give its memory back
	}
	d.server.spare = append(d.server.spare, index)
}

// sweepTables collapses the tables of sessions that said nothing for longer than a packet lives: nothing that could
// still arrive is unknown to the one number that stays.
func (d *Dispatcher) sweepTables() {
	s := &d.server
	for range min(sweepCount(len(s.tables)), len(s.tables)) {
		s.cursor = (s.cursor + 1) % uint32(len(s.tables))
		t := s.tables[s.cursor]
		if t == nil || t.place == 0 || d.now.Sub(t.heard) < d.cfg.PacketLifetime {
			continue
		}
		if t.Live() == 0 {
			d.dropTable(s.peers.At(uint32(t.place)), t)
		}
	}
}

// Drain refuses all new requests from here on; what was admitted is answered. Pending reports what is left.
func (d *Dispatcher) Drain() { d.server.draining = true }

// Waiting reports whether requests wait to be run.
func (d *Dispatcher) Waiting() bool { return d.server.queue.live > 0 }

// Pending is the number of requests admitted and not answered.
func (d *Dispatcher) Pending() int { return d.Queued() + d.server.inService.now }
