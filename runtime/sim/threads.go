package sim

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// ownQueue is the index of the CPU whose queue a packet is put on: RSS by the client, that is by its session. Packets of one client
// always go to one CPU.
func (m *Machine) ownQueue(p *packet) int {
	if len(m.nic) == 1 {
		return 0
	}
	var key uint64
	if in, err := wire.ParsePacket(p.buf); err == nil {
		if first, _, err := wire.NextMessage(in.Messages); err == nil {
			key = uint64(first.Session)
		}
	}
	const golden = 0x9e3779b97f4a7c15 // spreads consecutive numbers evenly (Knuth, volume 3, section 6.4)
	return int((key * golden >> 32) * uint64(len(m.nic)) >> 32)
}

// next takes the packet that a CPU handles next: of its own queue, or, if that is empty, of the next one that is not.
func (m *Machine) next(own int) *packet {
	for i := range m.nic {
		if p := m.nic[(own+i)%len(m.nic)].take(); p != nil {
			return p
		}
	}
	return nil
}

// threadBatch is how many packets a CPU receives in a row before it runs a thread again: the budget of the paper's runtime.
const threadBatch = 16

// received is the end of the reception of a packet. With threads, the one that reads it is now ready.
func (m *Machine) received(p *packet) {
	if m.cfg.Threads {
		p.since = m.w.now
		m.readers.put(p)
		return
	}
	m.inbox.put(p)
	m.d.Receive(m.w.now)
}

// more goes on with a batch of packets.
func (c *cpu) more() bool {
	if c.left > 0 && c.m.nic[c.queue].count > 0 {
		return c.packet()
	}
	c.left = 0
	return false
}

// thread runs the thread that has been ready for longest, if there is one: a reader, a handler, or one that answers.
func (c *cpu) thread() bool {
	m := c.m
	for {
		read, answer, request := m.readers.head, m.done.head, m.d.Oldest()
		switch {
		case read != nil && (answer == nil || read.since <= answer.since) && (request == 0 || read.since <= request):
			if c.read() {
				return true
			}
		case answer != nil && (request == 0 || answer.since <= request):
			return c.answer()
		case request != 0:
			if c.request() {
				return true
			}
			if m.d.Oldest() == request { // as many are in service as may be
				return false
			}
		default:
			return false
		}
	}
}

// read lets the dispatcher look at the next packet. What it costs was paid at its reception, but for a refusal; only then is it true.
func (c *cpu) read() bool {
	m := c.m
	m.inbox.put(m.readers.take())
	m.d.Receive(m.w.now)
	m.turn()
	cost := m.charge()
	return cost > 0 && c.spend(stepPay, cost)
}

// backlog is the age of the oldest packet of all queues and of the oldest thread that is no handler, and the number of packets and readers: for a
// dispatcher that sees a packet only when its reader runs.
func (m *Machine) backlog(now clock.Time) (packets, threads time.Duration, count int) {
	for i := range m.nic {
		q := &m.nic[i]
		if q.head != nil {
			packets = max(packets, now.Sub(q.head.arrival))
			count += q.count
		}
	}
	if m.readers.head != nil {
		threads = now.Sub(m.readers.head.since)
	}
	if m.done.head != nil {
		threads = max(threads, now.Sub(m.done.head.since))
	}
	return packets, threads, count + m.readers.count
}
