package sim

import (
	"github.com/stillwater-rpc/stillwater/credit/admit"
)

// lock is held by one, and handed on in order. Who waits for it does so at its gate, if it has one.
type lock struct {
	held    bool
	waiting jobQueue
	gate    *admit.Gate
	method  admit.Method // what the gate learns of how long it is held
}

func newLocks(c MachineConfig) []lock {
	locks := make([]lock, c.Locks)
	for i := range locks {
		if c.Gate != nil {
			config := *c.Gate
			config.Permits = 1
			locks[i].gate, locks[i].method = admit.NewGate(config), admit.NewMethod(admit.MethodConfig{})
		}
	}
	return locks
}

// take reports whether the job has the lock. If not it waits, or was refused.
func (l *lock) take(m *Machine, j *job) bool {
	if l.gate != nil {
		j.ticket.Value = j
		step, _ := l.gate.Arrive(m.w.now, &j.ticket, admit.Arrival{Deadline: j.request.Deadline, Method: &l.method})
		if step == admit.Refused {
			j.refuse()
		}
		return step == admit.Run
	}
	if l.held {
		l.waiting.put(j)
		return false
	}
	l.held = true
	return true
}

// giveBack hands the lock on.
func (l *lock) giveBack(m *Machine, j *job) {
	if l.gate != nil {
		l.gate.Done(m.w.now, &j.ticket, true)
		for t, step, _ := l.gate.Next(m.w.now); t != nil; t, step, _ = l.gate.Next(m.w.now) {
			next := t.Value.(*job)
			if next.at++; step == admit.Refused {
				next.refuse()
			}
			m.ready.put(next)
		}
		return
	}
	if next := l.waiting.take(); next != nil {
		next.at++
		m.ready.put(next)
		return
	}
	l.held = false
}
