package baseline

import (
	"cmp"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// DAGOR's settings, as evaluated in the artifact of Breakwater.
const (
	dagorPriorities   = 128
	dagorMiddle       = dagorPriorities / 2   // what a request that says no priority counts as
	dagorPeriod       = 10 * time.Microsecond // of the smoothing
	dagorKept         = 0.8                   // of the smoothed delay, each period; the rest is the new one
	dagorAdaptEvery   = time.Millisecond      // the cut moves this often,
	dagorAdaptAfter   = 2000                  // or after so many requests, if that is sooner
	dagorAlpha        = 0.05                  // of the cut that is lost at or above the threshold
	dagorBeta         = 0.01                  // of the priorities that it gains below it
	dagorCutMin       = 1.0
	dagorCutMax       = 127.0
	dagorCutFirst     = 32.0
	dagorThreshold100 = 500.0 // us, of every shape
)

// dagorThresholds are the delays, in us, from which a server counts as overloaded, by shape for 1, 10 and 100 us of service.
var dagorThresholds = map[string]published[float64]{
	Bimodal:     {20, 80, dagorThreshold100},
	Exponential: {30, 70, dagorThreshold100},
	Constant:    {30, 60, dagorThreshold100},
}

// dagor is the server's half: it lets in the priorities up to a cut, which follows the smoothed delay.
type dagor struct {
	*credit.None
	threshold time.Duration
	decrease  float64 // factor of the cut
	increase  float64 // of the cut, in priorities
	due       clock.Time
	delay     float64    // smoothed, in ns
	cut       float64    // priorities above it are rejected
	arrivals  uint64     // since the cut moved
	moved     clock.Time // when it did
}

func makeDAGOR(p Params, s *Scheme) {
	law := dagor{
		threshold: cmp.Or(p.Tuning.DAGOR.Threshold, p.delay(dagorThresholds[p.Shape])),
		decrease:  1 - cmp.Or(p.Tuning.DAGOR.Alpha, dagorAlpha),
		increase:  cmp.Or(p.Tuning.DAGOR.Beta, dagorBeta) * dagorPriorities,
		cut:       dagorCutFirst,
	}
	s.NewController = func() credit.Controller {
		d := law
		d.None = credit.NewNone(p.Slots)
		return &d
	}
	seeds := newSeeds(p.Seed)
	s.NewPolicy = func() client.Policy { return &dagorClient{rng: seeds.next()} }
}

// UpdateDue reports whether 10 us have passed since the last update.
func (d *dagor) UpdateDue(now clock.Time) bool { return now >= d.due }

// Update smooths the delay, and moves the cut when that is due. A time in which nothing arrived says nothing about the cut.
func (d *dagor) Update(now clock.Time, signal credit.Signal, load credit.Load) bool {
	if !d.UpdateDue(now) {
		return false
	}
	d.due = now.Add(dagorPeriod)
	d.delay = dagorKept*d.delay + (1-dagorKept)*float64(max(signal.Delay, 0))
	d.arrivals += load.Arrivals
	if d.arrivals == 0 || d.arrivals < dagorAdaptAfter && now.Sub(d.moved) < dagorAdaptEvery {
		return true
	}
	d.arrivals, d.moved = 0, now
	if d.delay >= float64(d.threshold) {
		d.cut *= d.decrease
	} else {
		d.cut += d.increase
	}
	d.cut = max(min(d.cut, dagorCutMax), dagorCutMin)
	return true
}

// Target is the threshold of the delay.
func (d *dagor) Target() time.Duration { return d.threshold }

// Level is the cut: clients drop what is above it.
func (d *dagor) Level() uint8 { return uint8(d.cut) }

// Admit rejects the priorities above the cut.
func (d *dagor) Admit(a credit.Arrival) bool {
	priority := a.Priority
	if priority == 0 {
		priority = dagorMiddle
	}
	return float64(priority) <= d.cut
}
