package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/load"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Step is one line of the table: one arm at one offered load.
type Step struct {
	Arm                string   `json:"arm"`
	Port               string   `json:"port"`
	IPVersion          int      `json:"ip_version"`
	Load               float64  `json:"load"` // times capacity
	OfferedPerS        float64  `json:"offered_per_s"`
	GoodputPerS        float64  `json:"goodput_per_s"`
	CapacityPerS       float64  `json:"capacity_per_s"` // measured just before
	SLONs              int64    `json:"slo_ns"`
	LatencyNsP50       int64    `json:"latency_ns_p50"`
	LatencyNsP99       int64    `json:"latency_ns_p99"`
	LatencyNsP999      int64    `json:"latency_ns_p999"`
	RejectedPerS       float64  `json:"rejected_per_s"`
	RejectLatencyNsP99 int64    `json:"reject_latency_ns_p99"`
	ExpiredPerS        float64  `json:"expired_per_s"`
	DeadlinePerS       float64  `json:"deadline_per_s"`
	QueueDelayNsMean   int64    `json:"queue_delay_ns_mean"`
	TargetDelayNs      int64    `json:"target_delay_ns"`
	CreditsPool        uint64   `json:"credits_pool"`
	CreditsIssued      uint64   `json:"credits_issued"`
	RetransmittedPerS  float64  `json:"retransmitted_per_s"`
	PacketsLost        uint64   `json:"packets_lost"`
	LatenessNsP99      int64    `json:"lateness_ns_p99"` // of the generator itself
	Seed               uint64   `json:"seed"`
	Failures           []string `json:"failures,omitempty"` // why the step is not to be believed
}

// calibration is what the server can do.
type calibration struct {
	capacityPerS float64
	roundTrip    time.Duration // unloaded, without the service
	slo          time.Duration
}

// calibrate measures the unloaded round trip and the capacity: the most that a closed loop gets through a server
// without control, which is always busy then.
func (a *arm) calibrate(ctx context.Context) (c calibration, err error) {
	alone, err := a.closedLoop(ctx, 1, a.cfg.atMost(unloadedWindow), a.cfg.atMost(unloadedWindow)/3)
	if err != nil {
		return c, err
	}
	if c.capacityPerS, err = a.capacity(ctx, a.cfg.atMost(capacityWindow), a.cfg.atMost(capacityWarmup)); err != nil {
		return c, err
	}
	c.roundTrip = max(time.Duration(alone.LatencyNsP50)-a.cfg.Service.Mean, 0)
	c.slo = max(sloFloor, sloFactor*(a.cfg.Service.Mean+c.roundTrip)).Round(10 * time.Microsecond)
	if c.capacityPerS == 0 {
		return c, fmt.Errorf("the server answered nothing in %v", a.cfg.atMost(capacityWindow))
	}
	return c, nil
}

// recalibrate measures the capacity anew: the speed of a shared machine changes within seconds, and a load is a multiple of what the server can do
// now.
func (a *arm) recalibrate(ctx context.Context, c calibration) (calibration, error) {
	perS, err := a.capacity(ctx, a.cfg.atMost(recalibrateWindow), a.cfg.atMost(recalibrateWindow)/5)
	if err != nil {
		return c, fmt.Errorf("measuring the capacity again: %w", err)
	}
	if perS > 0 { // else the machine stood still, and what it could do before is the better guess
		c.capacityPerS = perS
	}
	return c, nil
}

// capacity is the median of a few closed loops that keep the server busy, per second.
func (a *arm) capacity(ctx context.Context, window, warmup time.Duration) (float64, error) {
	var rounds []float64
	for range capacityRounds {
		busy, err := a.closedLoop(ctx, capacityOutstanding, window, warmup)
		if err != nil {
			return 0, err
		}
		rounds = append(rounds, busy.ThroughputPerS)
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2], nil
}

// sweepStep measures one offered load a number of times, each beside the capacity of that moment, and returns the median by the share
// of it that was goodput.
func (a *arm) sweepStep(ctx context.Context, c calibration, times float64, rounds int) (Step, error) {
	var all []Step
	for range rounds {
		now, err := a.recalibrate(ctx, c)
		if err != nil {
			return Step{}, err
		}
		s, err := a.offer(ctx, now, times)
		if err != nil {
			return Step{}, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y Step) int { return cmp.Compare(x.share(), y.share()) })
	return all[len(all)/2], nil
}

// share is how much of the capacity was goodput.
func (s *Step) share() float64 { return s.GoodputPerS / s.CapacityPerS }

// offer measures one offered load once.
func (a *arm) offer(ctx context.Context, c calibration, times float64) (Step, error) {
	loop := load.OpenLoop{Plan: a.plan(a.cfg.Window, a.cfg.atMost(stepWarmup)), Rate: times * c.capacityPerS}
	loop.BucketWidth = -1
	r, err := a.openLoop(ctx, loop)
	if err != nil {
		return Step{}, fmt.Errorf("%v at %.1f times capacity: %w", label(a.scheme), times, err)
	}
	s := Step{
		Arm: label(a.scheme), Port: a.server.Port, IPVersion: a.cfg.ipVersion(), Load: times, CapacityPerS: c.capacityPerS, SLONs: int64(a.slo),
		OfferedPerS: r.OfferedPerS, GoodputPerS: r.GoodputPerS,
		LatencyNsP50: r.LatencyNsP50, LatencyNsP99: r.LatencyNsP99, LatencyNsP999: r.LatencyNsP999,
		RejectedPerS: r.RejectedPerS, RejectLatencyNsP99: r.RejectLatencyNsP99, ExpiredPerS: r.ExpiredPerS,
		DeadlinePerS: r.DeadlinePerS, TargetDelayNs: int64(r.after.TargetDelay),
		CreditsPool: r.during.Pool, CreditsIssued: r.during.Issued,
		RetransmittedPerS: float64(r.after.Retransmitted-r.before.Retransmitted) / r.elapsed.Seconds(),
		PacketsLost:       lost(r.after) - lost(r.before),
		LatenessNsP99:     r.LatenessNsP99, Seed: r.Seed, Failures: r.Failures,
	}
	if n := r.during.Updates - r.before.Updates; n > 0 {
		s.QueueDelayNsMean = int64(r.during.DelaySum-r.before.DelaySum) / int64(n)
	}
	return s, nil
}

// lost is what the server's port lost on either way.
func lost(s sw.Stats) uint64 { return s.Port.ReceiveDropped + s.Port.SendDropped + s.NoBuffer }

// fall is one repetition of the step from overload to half load, in buckets.
type fall struct {
	buckets []load.Bucket
	at      int // index of the first bucket after the fall
}

// stepDown offers half load, overload, and half load again.
func (a *arm) stepDown(ctx context.Context, c calibration, seed uint64) (fall, error) {
	loop := load.OpenLoop{
		Plan: a.plan(calmTime+overloadTime+recoveryTime, a.cfg.atMost(stepWarmup)), Rate: recoveredAt * c.capacityPerS,
		Steps: []load.Step{
			{At: calmTime, RatePerS: overloadAt * c.capacityPerS},
			{At: calmTime + overloadTime, RatePerS: recoveredAt * c.capacityPerS},
		},
	}
	loop.BucketWidth, loop.Seed = bucketWidth, seed
	r, err := a.openLoop(ctx, loop)
	if err != nil {
		return fall{}, fmt.Errorf("%v, step down: %w", label(a.scheme), err)
	}
	return fall{buckets: r.Buckets, at: int((calmTime + overloadTime) / bucketWidth)}, nil
}
