package admit

import "time"

// Levers are what an operator pulls in an incident. Each can be pulled at any time, and set back.

// ShedShare refuses a share of what arrives, 0 to 1, the lowest level first; 0 = none.
func (d *Door) ShedShare(share float64) { d.shed.Set(share) }

// RetriesOff refuses all but first attempts, and has every refusal say "do not retry".
func (d *Door) RetriesOff(off bool) { d.retriesOff = off }

// Drain refuses all.
func (d *Door) Drain(on bool) { d.draining = on }

// Warmup starts to warm up, from the next arrival on; 0 = the server is warm.
func (d *Door) Warmup(length time.Duration) { d.warmup = NewWarmup(length, d.seed) }

// Headroom keeps a share of the CPUs free, 0 to 1; 0 = none.
func (d *Door) Headroom(share float64) { d.headroom = NewHeadroom(share, d.cpus) }

// Levers is how they stand.
type Levers struct {
	Shed       float64
	Headroom   float64
	RetriesOff bool
	Draining   bool
	WarmupLeft time.Duration
}

// Levers reads them.
func (d *Door) Levers() Levers {
	return Levers{
		Shed: d.shed.Share(), Headroom: d.headroom.Share(), RetriesOff: d.retriesOff, Draining: d.draining, WarmupLeft: d.warmup.Left(),
	}
}
