package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Pause takes a CPU away from a machine now and then, each by itself, as interrupts, kernel threads and hypervisors do: what it is at goes on later, and
// what waits for it waits on, or for another. The zero value is never.
type Pause struct {
	Every time.Duration // on average, from one to the next of the same CPU; exponentially distributed
	For   time.Duration // on average, exponentially distributed
}

// pauses are those of a machine under way.
type pauses struct {
	Pause
	rng *rand.Rand
}

func (p *pauses) draw(mean time.Duration) time.Duration {
	return time.Duration(p.rng.ExpFloat64() * float64(mean))
}

// pauseEdge is the beginning of a CPU's pause, and then its end.
type pauseEdge struct {
	c    *cpu
	away bool
	free bool // the CPU had nothing to do when it began
}

// foreseePauses foresees the first pause of each CPU.
func (m *Machine) foreseePauses() {
	m.pauses = pauses{Pause: m.cfg.Pause, rng: rand.New(rand.NewPCG(m.w.seed, streamPauses))}
	if m.pauses.Every <= 0 || m.pauses.For <= 0 {
		return
	}
	for _, c := range m.idle {
		m.w.at(m.w.now.Add(m.pauses.draw(m.pauses.Every)), &pauseEdge{c: c})
	}
	if m.poller != nil {
		m.w.at(m.w.now.Add(m.pauses.draw(m.pauses.Every)), &pauseEdge{c: m.poller})
	}
}

func (p *pauseEdge) act(w *World) {
	c := p.c
	m := c.m
	switch {
	case c.life != m.life: // of a process that was killed
		return
	case p.away:
		p.away = false
		w.at(w.now.Add(m.pauses.draw(m.pauses.Every)), p)
		if p.free {
			c.rest()
			m.assign()
			m.wake() // for what was due meanwhile
		}
		return
	}
	length := m.pauses.draw(m.pauses.For)
	p.away, p.free = true, c.leave()
	if !p.free {
		c.late += length
	}
	w.at(w.now.Add(length), p)
}

// leave takes a CPU that has nothing to do from those that are given work, and reports whether it had nothing to do.
func (c *cpu) leave() bool {
	m := c.m
	if c == m.poller {
		free := !m.polling
		m.polling = true
		return free
	}
	i := slices.Index(m.idle, c)
	if i < 0 {
		return false
	}
	m.idle = slices.Delete(m.idle, i, i+1)
	return true
}

// held reports whether the CPU was away during what it is at, and puts the end of that off.
func (c *cpu) held() bool {
	if c.late == 0 {
		return false
	}
	c.m.w.at(c.m.w.now.Add(c.late), c)
	c.late = 0
	return true
}
