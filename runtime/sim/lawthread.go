package sim

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// lawPeriod is how long the thread of the law sleeps: the artifact's 10 us.
const lawPeriod = 10 * time.Microsecond

// LawThread runs the updates of a server's credit law as a machine with threads does: a thread sleeps for 10 us, then waits in the run queue of a CPU like any
// other, and updates when its turn comes. So the more waits, the later the law looks. The zero value is ready for use, by one machine.
type LawThread struct {
	running bool
}

// Of is a controller whose updates wait for the thread.
func (l *LawThread) Of(law credit.Controller) credit.Controller { return &threaded{law, l} }

// threaded is a controller that a thread updates.
type threaded struct {
	credit.Controller
	thread *LawThread
}

// UpdateDue is false while the thread sleeps or waits.
func (t *threaded) UpdateDue(now clock.Time) bool {
	return t.thread.running && t.Controller.UpdateDue(now)
}

// Update is the law's, in its thread.
func (t *threaded) Update(now clock.Time, signal credit.Signal, load credit.Load) bool {
	return t.thread.running && t.Controller.Update(now, signal, load)
}

// Unwrap is the law.
func (t *threaded) Unwrap() credit.Controller { return t.Controller }

// lawTimer ends the sleep of the thread, on the CPU that has run it last.
type lawTimer struct {
	m    *Machine
	life int
	on   *cpuQueues
}

// sleep has the thread of the law wake up on a CPU.
func (m *Machine) sleep(on *cpuQueues) {
	if m.cfg.Threads && m.cfg.Law != nil {
		m.w.at(m.w.now.Add(lawPeriod), &lawTimer{m, m.life, on})
	}
}

func (l *lawTimer) act(w *World) {
	if l.life != l.m.life { // of a process that was killed
		return
	}
	l.on.put(thread{since: w.now, law: true})
	l.m.assign()
}

// updates runs the thread of the law. What it sends costs the CPU its time.
func (c *cpu) updates() bool {
	m := c.m
	m.cfg.Law.running = true
	m.d.Receive(m.w.now) // nothing: but a loop looks
	m.turn()
	m.cfg.Law.running = false
	m.sleep(c.queues)
	cost := m.charge()
	return cost > 0 && c.spend(stepPay, cost)
}
