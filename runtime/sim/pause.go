package sim

import (
	"math/rand/v2"
	"time"
)

// Pause takes all CPUs of a machine away for a while, again and again, as the firmware of a real one does (system management interrupts) and a
// hypervisor: what runs goes on later, packets arrive and wait, and nobody looks. The zero value is none.
type Pause struct {
	Every time.Duration // from the beginning of one to the beginning of the next
	For   time.Duration
}

// pauses are those of a machine under way.
type pauses struct {
	taken time.Duration // by all so far: what a CPU was at when one began takes longer by it
	away  bool          // in one now
	rng   *rand.Rand
}

// pauseEdge is the beginning of a pause, and then its end.
type pauseEdge struct {
	m     *Machine
	life  int
	start bool
}

// schedulePauses foresees the first pause.
func (m *Machine) schedulePauses() {
	m.pauses = pauses{rng: rand.New(rand.NewPCG(m.w.seed, streamPauses))}
	if m.cfg.Pause.Every > 0 && m.cfg.Pause.For > 0 {
		m.w.at(m.w.now.Add(m.cfg.Pause.Every), &pauseEdge{m, m.life, true})
	}
}

func (p *pauseEdge) act(w *World) {
	m := p.m
	if p.life != m.life { // of a process that was killed
		return
	}
	if p.start {
		length := time.Duration(m.pauses.rng.ExpFloat64() * float64(m.cfg.Pause.For))
		m.pauses.taken += length
		m.pauses.away = true
		w.at(w.now.Add(length), &pauseEdge{m, m.life, false})
		w.at(w.now.Add(m.cfg.Pause.Every), p)
		return
	}
	m.pauses.away = false
	m.turn()
	m.assign()
}

// held reports whether a pause began since the CPU was last asked, and puts the end of what it is at off by that.
func (c *cpu) held() bool {
	late := c.m.pauses.taken - c.pauses
	if late == 0 {
		return false
	}
	c.pauses += late
	c.m.w.at(c.m.w.now.Add(late), c)
	return true
}
