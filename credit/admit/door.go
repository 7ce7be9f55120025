package admit

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Defaults of a door.
const (
	TargetDefault  = 80 * time.Microsecond // 0.4 of an SLO of 200 us
	thresholdShare = 2                     // of the target: where the door shuts for what is Critical
)

// DoorConfig configures a Door. Zero values mean the documented defaults, which are safe without reading anything: levels with their floors, the
// check of deadlines, and the watch for retry storms.
type DoorConfig struct {
	// Target is the delay that the server aims at; 0 = 80 us. Above it a retry storm is one, and pressure is above 1.
	Target time.Duration
	// Threshold is the delay from which Critical requests are refused; 0 = twice the target.
	Threshold time.Duration
	// Levels are the shares of the levels, and their floor; its own threshold is this one's where it has none.
	Levels LevelsConfig
	// Scheme says that a scheme of overload control stands behind the door and decides by itself what is too long for Critical and above: the levels
	// decide below that alone.
	Scheme bool
	// NoAge leaves the check of deadlines to somebody else.
	NoAge bool
	// Warmup is how long the server takes to be warm, from the first arrival; 0 = it is.
	Warmup time.Duration
	// CPUs is how many requests can be computed on at once, for Headroom; 0 = 1.
	CPUs int
	// Seed decides who is refused where a share is.
	Seed uint64
}

// Arrival is a request at the door.
type Arrival struct {
	Delay    time.Duration // the queueing delay: the signal of load
	Wait     time.Duration // how long it will wait itself, as far as is known
	Deadline clock.Time    // zero = none
	Level    Level
	Attempt  uint8   // 0 for the first
	Method   *Method // nil = it costs one unit, and nothing is known of it
	Client   *Bucket // of who sent it; nil = any rate
}

// cost is in units.
func (a *Arrival) cost() int {
	if a.Method == nil {
		return 1
	}
	return a.Method.Cost()
}

// level is the request's own, or its method's.
func (a *Arrival) level() Level {
	if a.Level == Unset && a.Method != nil {
		return a.Method.level.or()
	}
	return a.Level.or()
}

// expected is how much work it will be.
func (a *Arrival) expected() time.Duration {
	if a.Method == nil {
		return 0
	}
	return a.Method.Expected()
}

// Door composes the policies that decide about an arrival. What costs nothing to ask comes first, and what takes tokens comes last, so that
// nothing is spent on a request that is refused.
type Door struct {
	target   time.Duration
	ages     bool
	levels   Levels
	weights  Weights
	costs    bool    // a method says what its requests cost
	plus     float64 // how much longer a delay CriticalPlus stands than Critical
	storm    Storm
	warmup   Warmup
	shed     Shed
	headroom Headroom
	cpus     int
	seed     uint64

	draining, retriesOff bool
	counters             Counters
}

// NewDoor makes a door.
func NewDoor(c DoorConfig) Door {
	if c.Target <= 0 {
		c.Target = TargetDefault
	}
	if c.Threshold <= 0 {
		c.Threshold = thresholdShare * c.Target
	}
	if c.Levels.Threshold == 0 {
		c.Levels.Threshold = c.Threshold
	}
	d := Door{
		target: c.Target, ages: !c.NoAge, plus: c.Levels.plus(), storm: NewStorm(c.Target), warmup: NewWarmup(c.Warmup, c.Seed),
		shed: NewShed(c.Seed), cpus: max(c.CPUs, 1), seed: c.Seed,
	}
	if c.Scheme {
		c.Levels.Shares[Critical], c.Levels.Shares[CriticalPlus] = -1, -1
	}
	d.levels = NewLevels(c.Levels)
	return d
}

// Arrive counts an arrival, whatever becomes of it. Decide is for those that nobody else has refused.
func (d *Door) Arrive(now clock.Time, attempt uint8, delay time.Duration) {
	d.counters.Arrivals++
	if attempt > 0 {
		d.counters.Repeated++
	}
	before := d.storm.On()
	d.storm.Arrive(now, attempt, delay)
	if d.storm.On() && !before {
		d.counters.Storms++
	}
}

// Decide says whether a request is let in. If it is, and is refused behind the door, Return gives back what was taken for it.
func (d *Door) Decide(now clock.Time, a *Arrival) Verdict {
	own, units := a.level(), d.units(a)
	level := own
	if a.Method != nil && d.weights.Beyond(&a.Method.shares, own) {
		level = Sheddable
	}
	switch {
	case d.draining:
		return d.Refuse(ReasonDraining, 0)
	case d.retriesOff && a.Attempt > 0:
		return d.Refuse(ReasonRetriesOff, 0)
	case !d.warmup.Admit(now):
		return d.Refuse(ReasonWarmup, d.warmup.Left())
	case !d.shed.Admit(level, units):
		return d.Refuse(ReasonShed, 0)
	case d.ages && a.Method != nil && !a.Method.Age.Admit(now, a.Deadline, a.Wait):
		return d.Refuse(ReasonExpired, 0)
	case !d.levels.Admit(level, a.Delay) && level != own:
		return d.Refuse(ReasonShare, d.recedes(a.Delay))
	case !d.levels.Admit(level, a.Delay):
		return d.Refuse(ReasonOverloaded, d.recedes(a.Delay))
	}
	if reason, retryAfter := d.spend(now, a); reason != ReasonNone {
		return d.Refuse(reason, retryAfter)
	}
	d.levels.Admitted(level, a.Delay, units)
	if a.Method != nil {
		d.weights.Admitted(&a.Method.shares, own, units)
	}
	d.counters.Admitted++
	return Verdict{OK: true}
}

// units is what a request counts where floors and shares are reckoned: the cost of its method, or, where no method says one, the work that it is expected to be.
func (d *Door) units(a *Arrival) int {
	if !d.costs && a.Method != nil && a.Method.cost > 0 {
		d.costs = true
		d.weights.forget()
	}
	if d.costs {
		return a.cost()
	}
	return max(workUnits(a.expected()), 1)
}

// spend takes the tokens: all of them, or none.
func (d *Door) spend(now clock.Time, a *Arrival) (Reason, time.Duration) {
	work := a.expected()
	if ok, again := d.headroom.Admit(now, work); !ok {
		return ReasonHeadroom, again
	}
	if a.Client != nil {
		if ok, again := a.Client.Take(now, a.cost()); !ok {
			d.headroom.Return(work)
			return ReasonClientRate, again
		}
	}
	if a.Method != nil {
		if ok, again := a.Method.Bucket.Take(now, a.cost()); !ok {
			d.headroom.Return(work)
			if a.Client != nil {
				a.Client.Give(a.cost())
			}
			return ReasonMethodRate, again
		}
	}
	return ReasonNone, 0
}

// Return takes back that a request was let in, since it was refused behind the door before it ran, in the same turn.
func (d *Door) Return(a *Arrival) {
	d.counters.Returned++
	d.headroom.Return(a.expected())
	if a.Client != nil {
		a.Client.Give(a.cost())
	}
	if a.Method != nil {
		a.Method.Bucket.Give(a.cost())
		d.weights.Admitted(&a.Method.shares, a.level(), -d.units(a))
	}
}

// Refuse counts a refusal and says what to tell of it; for those behind the door as well.
func (d *Door) Refuse(reason Reason, retryAfter time.Duration) Verdict {
	d.counters.Refused[reason]++
	return Verdict{Reason: reason, Advice: d.Advice(reason), RetryAfter: retryAfter}
}

// Advice is what a refusal says about another attempt. One that is refused for load should not come again at once, and during a retry storm, or
// with retries off, none should. An empty bucket and a cold server say when; what expired would be as late again, but perhaps not elsewhere.
func (d *Door) Advice(reason Reason) Advice {
	if d.retriesOff || d.storm.On() {
		return AdviceDoNotRetry
	}
	switch reason {
	case ReasonRetriesOff, ReasonShed, ReasonOverloaded, ReasonHeadroom, ReasonQueueFull, ReasonWaited, ReasonCoDel, ReasonShare:
		return AdviceDoNotRetry
	}
	return AdviceNone
}

// recedes is how long the queue takes to come down to the target, if nothing came meanwhile.
func (d *Door) recedes(delay time.Duration) time.Duration { return max(delay-d.target, 0) }

// Seen is the delay as a scheme behind the door should see it: for CriticalPlus it is shorter, so that what shuts out Critical does not shut out that.
func (d *Door) Seen(a *Arrival) time.Duration {
	if a.level() != CriticalPlus {
		return a.Delay
	}
	return time.Duration(float64(a.Delay) / d.plus)
}

// Pressure is how loaded the server is: the delay in targets. Above 1 it is overloaded, and who has a cheaper answer should give that.
func (d *Door) Pressure(delay time.Duration) float64 {
	return float64(max(delay, 0)) / float64(d.target)
}

// Counters counts what the door did.
func (d *Door) Counters() Counters { return d.counters }

// Storm reports whether there is a retry storm.
func (d *Door) Storm() bool { return d.storm.On() }
