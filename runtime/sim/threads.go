package sim

import (
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// threadsMax is how many requests may be in service with threads: each has one, so as many are as were admitted.
const threadsMax = 1 << 20

// cpuQueues are what waits for one CPU.
type cpuQueues struct {
	nic  packetQueue
	run  []thread // ready, first in, first out
	head int      // in run
}

// thread is a user-level thread that is ready: one that reads a packet, one that runs a handler, one that answers, or that of the law.
type thread struct {
	since   clock.Time
	packet  *packet
	request *dispatcher.Request
	job     *job
	law     bool
}

func (q *cpuQueues) ready() int { return len(q.run) - q.head }

func (q *cpuQueues) put(t thread) { q.run = append(q.run, t) }

func (q *cpuQueues) take() thread {
	t := q.run[q.head]
	q.run[q.head] = thread{}
	if q.head++; 2*q.head >= len(q.run) { // what was taken is given up when it is half of all
		n := copy(q.run, q.run[q.head:])
		clear(q.run[n:])
		q.run, q.head = q.run[:n], 0
	}
	return t
}

// drop frees the packets of a process that was killed.
func (q *cpuQueues) drop(w *World) {
	q.nic.drop(w)
	for q.ready() > 0 {
		if t := q.take(); t.packet != nil {
			w.net.lost++
			w.free(t.packet)
		}
	}
}

// packets counts those that wait.
func (q *cpuQueues) packets() int {
	n := q.nic.count
	for _, t := range q.run[q.head:] {
		if t.packet != nil {
			n++
		}
	}
	return n
}

// queuesOf is where a packet is put: with threads RSS by the client, that is by its session, so that packets of one client always go to one CPU; else by
// the host, where there is a choice.
func (m *Machine) queuesOf(p *packet) *cpuQueues {
	switch {
	case m.cfg.Threads:
		return &m.queues[(mix(clientOf(p))>>32)*uint64(len(m.queues))>>32]
	case m.cfg.Steered:
		return &m.queues[int(p.from.IP[15])%len(m.queues)]
	}
	return &m.queues[0]
}

// clientOf is the session of a packet's first message; 0 = it has none.
func clientOf(p *packet) uint64 {
	in, err := wire.ParsePacket(p.buf)
	if err != nil {
		return 0
	}
	first, _, err := wire.NextMessage(in.Messages)
	if err != nil {
		return 0
	}
	return uint64(first.Session)
}

// mix is a hash without any pattern (the finalizer of SplitMix64), as RSS has none: some CPUs have more clients than others.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// received is the end of the reception of a packet. With threads, the one that reads it is now ready.
func (c *cpu) received(p *packet) {
	m := c.m
	if m.cfg.Threads {
		c.queues.put(thread{since: m.w.now, packet: p})
		return
	}
	m.inbox.put(p)
	m.d.Receive(m.w.now)
}

// When a CPU with threads receives packets.
const (
	packetsAtOnce = 16                    // in one go at most
	packetsAfter  = 20 * time.Microsecond // at the latest, while threads are ready
)

// polling is a CPU's reception of packets, which goes on for up to packetsAtOnce of them.
type polling struct {
	from *cpuQueues
	left int        // of those that may follow at once
	due  clock.Time // while threads are ready
}

// schedule is the scheduler of a CPU: its own threads, and its packets when there are none, or when those have waited for their turn; then what lies with others.
func (c *cpu) schedule() bool {
	for {
		if c.poll.left > 0 && c.poll.from.nic.count > 0 {
			c.poll.left--
			return c.receive()
		}
		c.poll.left = 0
		if now := c.m.w.now; now >= c.poll.due {
			c.poll.due = now.Add(packetsAfter)
			if c.polls(c.queues) {
				return true
			}
		}
		for c.queues.ready() > 0 {
			if c.runs(c.queues.take()) {
				return true
			}
		}
		if c.polls(c.queues) {
			return true
		}
		switch stolen, busy := c.steal(); {
		case busy:
			return true
		case !stolen:
			return false
		}
	}
}

// polls begins to receive the packets of a CPU, and reports whether there are any.
func (c *cpu) polls(q *cpuQueues) bool {
	if q.nic.count == 0 {
		return false
	}
	c.poll.from, c.poll.left = q, packetsAtOnce-1
	return c.receive()
}

// receive takes the next packet.
func (c *cpu) receive() bool {
	c.in = c.poll.from.nic.take()
	return c.spend(stepReceive, time.Duration(messages(c.in.buf))*c.m.cfg.Costs.Receive)
}

// steal takes half of the threads of another CPU, or receives its packets. It reports whether there was any, and whether that keeps the CPU busy.
func (c *cpu) steal() (stolen, busy bool) {
	m := c.m
	for i := range m.queues {
		q := &m.queues[(c.number+1+i)%len(m.queues)]
		switch n := q.ready(); {
		case q == c.queues:
		case n > 0:
			for range (n + 1) / 2 {
				c.queues.put(q.take())
			}
			return true, false
		case c.polls(q):
			return true, true
		}
	}
	return false, false
}

// runs runs a thread, and reports whether it keeps the CPU busy.
func (c *cpu) runs(t thread) bool {
	m := c.m
	switch {
	case t.packet != nil:
		return c.reads(t.packet)
	case t.law:
		return c.updates()
	case t.job != nil:
		c.job = t.job
		return c.spend(stepAnswer, m.cfg.Costs.Send)
	}
	r := m.d.Start(m.w.now, t.request, t.since)
	if r == nil {
		return false
	}
	c.job = m.begin(r)
	return c.compute()
}

// reads lets the dispatcher look at a packet. What that costs was paid at its reception, but for a refusal.
func (c *cpu) reads(p *packet) bool {
	m := c.m
	m.inbox.put(p)
	m.reader = c
	m.d.Receive(m.w.now)
	m.turn()
	cost := m.charge()
	return cost > 0 && c.spend(stepPay, cost)
}

// queued gives a request that was admitted a thread, on the CPU that has read it.
func (m *Machine) queued(r *dispatcher.Request) {
	m.reader.queues.put(thread{since: m.w.now, request: r})
}

// backlog is the load signal as the artifact has it: the age of the oldest packet of all CPUs, and of the oldest thread, and the number of packets that no thread has read.
func (m *Machine) backlog(now clock.Time) (delay time.Duration, count int) {
	var packets, threads time.Duration
	for i := range m.queues {
		q := &m.queues[i]
		if q.nic.head != nil {
			packets = max(packets, now.Sub(q.nic.head.arrival))
			count += q.nic.count
		}
		if q.ready() > 0 {
			threads = max(threads, now.Sub(q.run[q.head].since))
			count += q.ready()
		}
	}
	return packets + threads, count
}
