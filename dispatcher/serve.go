package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// fromClient handles one message of an accepted connection.
func (d *Dispatcher) fromClient(c *session.Conn, in inbound, m wire.Message) error {
	switch m.Type {
	case wire.TypeRequest, wire.TypeRegister:
		r, err := wire.ParseRequest(m.Raw)
		if err != nil {
			return err
		}
		d.request(c, in, &r)
	case wire.TypeProbe:
		p, err := wire.ParseProbe(m.Raw)
		if err != nil {
			return err
		}
		d.probe(c, in, p)
	case wire.TypeCancel:
		x, err := wire.ParseCancel(m.Raw)
		if err != nil {
			return err
		}
		d.cancel(c, in, x)
	case wire.TypeDeregister:
		x, err := wire.ParseDeregister(m.Raw)
		if err != nil {
			return err
		}
		d.farewell(c, in, x)
	case wire.TypeOpen:
		// handled with the handshake
	default:
		d.stats.UnknownMessages++
	}
	return nil
}

// request decides about one request: session, at most once, possession, the door, in this order.
func (d *Dispatcher) request(c *session.Conn, in inbound, r *wire.Request) {
	place := d.sessionOf(c, in, r)
	if place == 0 {
		return
	}
	peer := d.server.peers.At(uint32(place))
	next := uint64(r.Next)
	if r.Unasked {
		next = 0 // its numbers are its own affair: see Ledger.Invite
	}
	d.server.ledger.Heard(d.now, place, next, r.Seq, r.Demand, in.newer)
	if r.Retransmission {
		d.stats.Retransmitted++
	}
	if int(r.Slot) >= d.cfg.SlotsMax {
		d.turnDown(c, peer, place, r, wire.RejectNoSlot)
		return
	}
	state := session.Fresh
	table := d.tableOf(peer)
	if table != nil {
		table.heard = d.now
		state, _ = table.Lookup(r.Number, r.Slot)
	}
	if state == session.Fresh && r.Number < peer.Floor {
		state = session.Stale
	}
	switch state {
	case session.Fresh:
		d.arrive(c, peer, place, in, r)
	case session.Pending:
		d.stats.Duplicates++
		d.busy(c, peer, r)
	case session.Answered:
		d.stats.Duplicates++
		d.replyAgain(c, place, table.Kept(r.Slot))
	case session.Rejected:
		d.stats.Duplicates++
		d.reject(c, peer, place, r.Number, r.Slot, table.Refused(d.now, r.Slot))
	case session.Stale:
		d.stats.Stale++
	}
	// A registration that is asked for again, perhaps by registerAgain, is as good as a probe. So is what is asked for too late, when its answer is kept no
	// more: its client waits for that in vain, and meanwhile does not probe for the calls that wait behind it.
	if r.Register && state != session.Fresh || state == session.Stale {
		d.tellCredit(c, in, place, wire.Probe{Next: r.Next, Seq: r.Seq, Demand: r.Demand})
	}
}

// sessionOf finds the session of a request, and makes it when the request registers it.
func (d *Dispatcher) sessionOf(c *session.Conn, in inbound, r *wire.Request) credit.Session {
	if !r.Register {
		place, known := d.known(c, in, r.Session)
		if !known {
			d.sessionGone(c, r.Session)
		}
		return place
	}
	if r.Session == 0 {
		d.stats.Malformed++
		return 0
	}
	place := credit.Session(d.server.peers.Find(c, r.Session))
	if d.server.peers.Stale(uint32(place), c, in.number) {
		d.stats.Stale++
		return 0
	}
	if place == 0 {
		if place = d.admitSession(c, in, r.Session); place == 0 {
			d.stats.TooMany++
			return 0
		}
	}
	m := wire.Registered{
		Session: r.Session, ServerSession: d.server.peers.ID(uint32(place)), Slots: uint16(d.cfg.SlotsMax),
		TargetDelay: d.server.TargetDelay, DropThreshold: d.server.DropThreshold,
	}
	if o := d.room(c, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
	}
	return place
}

// known finds the session that a message is about. A message about an earlier session of the same handle has none, though the
// handle is known.
func (d *Dispatcher) known(c *session.Conn, in inbound, id wire.SessionID) (place credit.Session, known bool) {
	at := d.server.peers.Lookup(c, id)
	if at == 0 {
		return 0, false
	}
	if d.server.peers.Stale(at, c, in.number) {
		d.stats.Stale++
		return 0, true
	}
	return credit.Session(at), true
}

// admitSession makes a session, or returns 0 when there are too many. One connection may have no more than are left to the others:
// whoever wants all of them gets half.
func (d *Dispatcher) admitSession(c *session.Conn, in inbound, handle wire.SessionID) credit.Session {
	s := &d.server
	if c.Sessions() >= d.cfg.SessionsMax-s.peers.Len() {
		return 0
	}
	place, err := s.ledger.Register(d.now)
	if err != nil {
		return 0
	}
	if s.Weight != nil {
		s.ledger.SetWeight(place, s.Weight(c.Peer))
	}
	if _, err = s.peers.Add(uint32(place), c, handle, in.number); err != nil {
		panic("dispatcher: the ledger gave out a place that is taken: " + err.Error())
	}
	return place
}

// sessionGone tells a client that one of its sessions is unknown here, at a bounded rate.
func (d *Dispatcher) sessionGone(c *session.Conn, id wire.SessionID) {
	d.stats.UnknownSession++
	if !d.refuse.take(d.now) {
		d.stats.SmallAnswersHeldBack++
		return
	}
	d.tellGone(c, id)
}

func (d *Dispatcher) tellGone(c *session.Conn, id wire.SessionID) {
	m := wire.Gone{Connection: c.Local, Session: id}
	if o := d.room(c, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
	}
}

// arrive is the door for a request that was never seen before.
func (d *Dispatcher) arrive(c *session.Conn, peer *session.Peer, place credit.Session, in inbound, r *wire.Request) {
	s := &d.server
	wait := d.waited(in.since)
	invited := r.Unasked && d.invite(peer, place, r, wait)
	if !s.ledger.Arrive(d.now, place, uint64(r.Number)) {
		d.turnDown(c, peer, place, r, wire.RejectOverLimit)
		return
	}
	// Only who may send is asked for the round trip that times the control: nobody has more say in it than he has credits.
	d.rtt.Sample(in.rtt)
	d.stats.Offered++
	if invited {
		d.stats.Unasked++
	}
	method := s.methods[r.Method]
	delay := d.delay(wait)
	s.door.Arrive(d.now, r.Attempt, delay)
	var deadline clock.Time
	if r.HasBudget {
		deadline = in.arrival.Add(r.Budget)
	}
	switch {
	case s.draining:
		d.turnAway(c, peer, place, r, d.refusal(wire.RejectDraining))
	case r.HasBudget && r.Budget == 0: // a registration asked for again: see registerAgain
		d.turnAway(c, peer, place, r, d.refusal(wire.RejectExpired))
	case method == nil:
		d.turnAway(c, peer, place, r, d.refusal(wire.RejectUnknownMethod))
	case !d.inTime(method, deadline): // it would be too late when its turn comes
		d.turnAway(c, peer, place, r, d.refusal(wire.RejectExpired))
	default:
		no, ok := d.admits(c, method, r, deadline, delay, invited)
		if !ok {
			d.turnAway(c, peer, place, r, no)
			return
		}
		req := s.pool.get()
		req.Method, req.Deadline = method, deadline
		req.Criticality, req.Attempt, req.AttemptsLeft = r.Criticality, r.Attempt, r.AttemptsLeft
		req.owner, req.session, req.serial = d.cfg.Owner, place, s.peers.Serial(uint32(place))
		req.number, req.slot, req.state = r.Number, r.Slot, requestQueued
		req.arrival, req.enqueued = in.arrival, max(d.now, in.arrival) // which may be after the turn has read the clock
		req.Payload, req.Reply, req.Status = append(req.Payload[:0], r.Payload...), req.Reply[:0], wire.StatusOK
		d.replaced(d.tableFor(peer, place).Begin(r.Number, r.Slot, req))
		req.expected = d.queueWork()
		s.queue.push(req)
		d.stats.Admitted++
		if s.Queued != nil {
			s.Queued(req)
		}
	}
}

// invite decides about a request without a credit, and reports whether it gets one, should it need one.
func (d *Dispatcher) invite(peer *session.Peer, place credit.Session, r *wire.Request, wait time.Duration) bool {
	s := &d.server
	open := s.queue.live < s.QueueMax && s.ledger.Admit(credit.Arrival{Now: d.now, Delay: d.ahead(wait), Priority: r.Priority})
	beside := wire.Number(0)
	if r.Criticality == wire.CriticalPlus {
		beside = credit.InvitedBeside
	}
	if s.ledger.Invite(d.now, place, uint64(r.Number), open || s.draining, uint16(beside)) {
		peer.Floor = max(peer.Floor, r.Number-min(beside, r.Number))
	}
	return open
}

// queueDelay is the signal of the request queue: the age of the oldest, or how long the queued work will take the
// workers, whichever is more. Age alone would admit everything that arrives while the queue ages up to the threshold.
//
// While the newest are served first, the oldest say nothing about those to come.
func (d *Dispatcher) queueDelay() time.Duration {
	if d.server.order.On() {
		return d.queueWork()
	}
	return max(d.server.queue.age(d.now), d.queueWork())
}

// queueWork is how long the queued work will take the CPUs. Where handlers wait for something else, more of them get done at a time, and it is too
// much: that keeps the queue short where requests stay long in their handlers. (As many as are in service in the place of the CPUs: the device of
// inService at twice its capacity, 75 % of it instead of 97.) An endpoint that serves nothing has no workers.
func (d *Dispatcher) queueWork() time.Duration {
	return d.server.queue.work / time.Duration(max(d.server.Parallel, 1))
}

// ahead is how long a request that arrives now is going to wait. The age of the oldest may be far more: of a burst that is nearly through, the last.
func (d *Dispatcher) ahead(packets time.Duration) time.Duration {
	if d.server.Backlog == nil {
		return packets + d.queueWork()
	}
	delay, _ := d.server.Backlog(d.now)
	return delay
}

// Delay is the load signal: the age of the oldest packet plus the delay of the request queue.
func (d *Dispatcher) Delay() time.Duration { return d.delay(d.server.packetAge) }

// delay is the load signal, with so much packet-queue delay where the shell does not know more.
func (d *Dispatcher) delay(packets time.Duration) time.Duration {
	if d.server.Backlog == nil {
		return packets + d.queueDelay()
	}
	delay, _ := d.server.Backlog(d.now)
	return delay
}

// turnAway rejects a request that possessed a credit: it is an answer, and closes the request.
func (d *Dispatcher) turnAway(c *session.Conn, peer *session.Peer, place credit.Session, r *wire.Request, no session.Refusal) {
	d.server.ledger.Answer(d.now, place, credit.Rejection)
	d.replaced(d.tableFor(peer, place).Reject(d.now, r.Number, r.Slot, no))
	d.stats.Rejected[no.Reason]++
	d.reject(c, peer, place, r.Number, r.Slot, no)
}

// turnDown answers a request that possessed no credit, or no slot: it changes nothing here, so the answer is rate-limited.
func (d *Dispatcher) turnDown(c *session.Conn, peer *session.Peer, place credit.Session, r *wire.Request, reason wire.RejectReason) {
	d.stats.Refused++
	if !d.refuse.take(d.now) {
		d.stats.SmallAnswersHeldBack++
		return
	}
	d.reject(c, peer, place, r.Number, r.Slot, d.refusal(reason))
}

func (d *Dispatcher) reject(c *session.Conn, peer *session.Peer, place credit.Session, n wire.Number, s wire.Slot, no session.Refusal) {
	limit, seq := d.server.ledger.Limit(place)
	m := wire.Reject{Session: peer.Handle, Number: n, Limit: wire.Number(limit), Seq: seq, Slot: s, Reason: no.Reason, Advice: no.Advice, Level: d.level(), RetryAfter: no.RetryAfter}
	d.stats.RejectsSent++
	if o := d.room(c, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
		d.told()
	}
}

func (d *Dispatcher) busy(c *session.Conn, peer *session.Peer, r *wire.Request) {
	m := wire.Busy{Session: peer.Handle, Number: r.Number, Slot: r.Slot}
	if o := d.room(c, m.Length()); o != nil {
		o.buffer.Bytes = m.Append(o.buffer.Bytes)
		d.told()
	}
}

// reply sends a request's answer, and keeps a copy for a client that asks again.
func (d *Dispatcher) reply(c *session.Conn, peer *session.Peer, req *Request, kept *[]byte) {
	limit, seq := d.server.ledger.Limit(req.session)
	packetQueue, requestQueue := req.Waited()
	m := wire.Reply{
		Session: peer.Handle, Number: req.number, Limit: wire.Number(limit), Seq: seq, Slot: req.slot, Status: req.Status, Level: d.level(),
		PacketQueue: packetQueue, RequestQueue: requestQueue, Service: req.service(),
		Payload: req.Reply,
	}
	*kept = m.Append((*kept)[:0])
	d.sendReply(c, *kept, req.Deadline)
}

// level is what the scheme tells the clients; zero for nothing. See wire.LevelInvitation.
func (d *Dispatcher) level() uint8 {
	if d.server.leveler != nil {
		return d.server.leveler.Level()
	}
	if invited := d.server.ledger.Invited(d.ahead(d.server.packetAge)); invited != 0 {
		return wire.LevelInvitation + invited
	}
	return 0
}

// replyAgain sends a kept answer with today's limit and level.
func (d *Dispatcher) replyAgain(c *session.Conn, place credit.Session, kept []byte) {
	limit, seq := d.server.ledger.Limit(place)
	wire.SetReplyLimit(kept, wire.Number(limit), seq, d.level())
	d.sendReply(c, kept, 0)
}

func (d *Dispatcher) sendReply(c *session.Conn, message []byte, deadline clock.Time) {
	if o := d.room(c, len(message)); o != nil {
		o.buffer.Bytes = append(o.buffer.Bytes, message...)
		d.answered(deadline)
	}
}

// replaced deals with the pending request that a newer one pushed off its slot.
func (d *Dispatcher) replaced(before *Request) {
	if before == nil {
		return
	}
	switch before.state {
	case requestQueued: // its client gave it up: answered, unstarted
		d.server.ledger.Answer(d.now, before.session, credit.Cancelled)
		d.unqueue(before)
		d.stats.Abandoned++
	case requestRunning: // it counts until its handler returns
		before.state = requestOrphan
		before.abandon()
	}
}

// unqueue takes a request that will not run out of the queue.
func (d *Dispatcher) unqueue(r *Request) {
	d.dequeue(r)
	d.recycle(r)
}

// dequeue takes a request out of the queue in which it waits.
func (d *Dispatcher) dequeue(r *Request) {
	if r.in != &d.server.queue {
		d.server.parked--
	}
	r.in.remove(r)
}

func (d *Dispatcher) recycle(r *Request) {
	r.state = requestFree
	d.server.pool.put(r)
}
