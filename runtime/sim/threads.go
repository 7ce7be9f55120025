package sim

import (
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// threadsMax is how many requests may be in service with threads: each has one, so as many are as were admitted.
const threadsMax = 1 << 20

// lane is what waits for one CPU.
type lane struct {
	nic  packetQueue
	run  []thread // ready, first in, first out
	head int      // in run
}

// thread is a user-level thread that is ready: one that reads a packet, one that runs a handler, or one that answers.
type thread struct {
	since   clock.Time
	packet  *packet
	request *dispatcher.Request
	job     *job
}

func (l *lane) ready() int { return len(l.run) - l.head }

func (l *lane) put(t thread) { l.run = append(l.run, t) }

func (l *lane) take() thread {
	t := l.run[l.head]
	l.run[l.head] = thread{}
	if l.head++; 2*l.head >= len(l.run) { // what was taken is given up when it is half of all
		n := copy(l.run, l.run[l.head:])
		clear(l.run[n:])
		l.run, l.head = l.run[:n], 0
	}
	return t
}

// drop frees the packets of a process that was killed.
func (l *lane) drop(w *World) {
	l.nic.drop(w)
	for l.ready() > 0 {
		if t := l.take(); t.packet != nil {
			w.net.lost++
			w.free(t.packet)
		}
	}
}

// packets counts those that wait.
func (l *lane) packets() int {
	n := l.nic.count
	for _, t := range l.run[l.head:] {
		if t.packet != nil {
			n++
		}
	}
	return n
}

// laneOf is where a packet is put: RSS by the client, that is by its session. Packets of one client always go to one CPU.
func (m *Machine) laneOf(p *packet) *lane {
	if len(m.lanes) == 1 {
		return &m.lanes[0]
	}
	var key uint64
	if in, err := wire.ParsePacket(p.buf); err == nil {
		if first, _, err := wire.NextMessage(in.Messages); err == nil {
			key = uint64(first.Session)
		}
	}
	return &m.lanes[(mix(key)>>32)*uint64(len(m.lanes))>>32]
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
		c.lane.put(thread{since: m.w.now, packet: p})
		return
	}
	m.inbox.put(p)
	m.d.Receive(m.w.now)
}

// schedule is the scheduler of a CPU: its own packets, its own threads, those of the others.
func (c *cpu) schedule() bool {
	for {
		if c.lane.nic.count > 0 {
			return c.receive(c.lane)
		}
		for c.lane.ready() > 0 {
			if c.runs(c.lane.take()) {
				return true
			}
		}
		switch stolen, busy := c.steal(); {
		case busy:
			return true
		case !stolen:
			return false
		}
	}
}

// receive takes a packet of a lane.
func (c *cpu) receive(l *lane) bool {
	c.in = l.nic.take()
	return c.spend(stepReceive, time.Duration(messages(c.in.buf))*c.m.cfg.Costs.Receive)
}

// steal takes half of the threads of another CPU, or receives a packet of its. It reports whether there was any, and whether that keeps the CPU busy.
func (c *cpu) steal() (stolen, busy bool) {
	m := c.m
	for i := range m.lanes {
		l := &m.lanes[(c.number+1+i)%len(m.lanes)]
		switch n := l.ready(); {
		case l == c.lane:
		case n > 0:
			for range (n + 1) / 2 {
				c.lane.put(l.take())
			}
			return true, false
		case l.nic.count > 0:
			return true, c.receive(l)
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
	m.reader.lane.put(thread{since: m.w.now, request: r})
}

// backlog is the load signal as the artifact has it: the age of the oldest packet of all CPUs, and of the oldest thread, and the number of packets that no thread has read.
func (m *Machine) backlog(now clock.Time) (delay time.Duration, count int) {
	var packets, threads time.Duration
	for i := range m.lanes {
		l := &m.lanes[i]
		if l.nic.head != nil {
			packets = max(packets, now.Sub(l.nic.head.arrival))
			count += l.nic.count
		}
		if l.ready() > 0 {
			threads = max(threads, now.Sub(l.run[l.head].since))
			count += l.ready()
		}
	}
	return packets + threads, count
}
