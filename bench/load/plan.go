package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// Plan is what open and closed loops have in common: what to ask, when to measure, and what counts as good. Zero
// values stand for the defaults named here.
type Plan struct {
	Sessions     int                  `json:"sessions"`      // virtual clients, picked uniformly at random; default 1
	PayloadBytes int                  `json:"payload_bytes"` // default 64, at least workload.WorkBytes
	ServiceTime  workload.ServiceTime `json:"service_time"`  // default no work, an echo

	SLO      time.Duration `json:"slo_ns"`      // answers within it are goodput; zero counts every answer
	Deadline time.Duration `json:"deadline_ns"` // the budget of each request; zero is none

	Warmup      time.Duration `json:"warmup_ns"`   // load before the window
	Duration    time.Duration `json:"duration_ns"` // the window; must be given
	Cooldown    time.Duration `json:"cooldown_ns"` // load after the window; default 10 ms, negative is none
	BucketWidth time.Duration `json:"bucket_ns"`   // of the time series; default 10 ms, negative keeps none
	DrainLimit  time.Duration `json:"drain_ns"`    // how long to wait for the last outcomes; default 5 s

	Seed uint64 `json:"seed"`

	// ReasonName names Op.Reason in results; the default is the number.
	ReasonName func(reason uint8) string `json:"-"`
}

// The defaults of a Plan.
const (
	defaultPayloadBytes = 64
	defaultCooldown     = 10 * time.Millisecond
	defaultBucketWidth  = 10 * time.Millisecond
	defaultDrainLimit   = 5 * time.Second
	// maxBuckets bounds the time series; more would not be readable, and would be megabytes in JSON.
	maxBuckets = 100_000
)

// orDefault resolves "zero is the default, negative is none".
func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return max(d, 0)
}

// resolved returns the plan with its defaults filled in, or says what is wrong with it.
func (p Plan) resolved() (Plan, error) {
	if p.Sessions == 0 {
		p.Sessions = 1
	}
	if p.PayloadBytes == 0 {
		p.PayloadBytes = defaultPayloadBytes
	}
	p.Cooldown = orDefault(p.Cooldown, defaultCooldown)
	p.BucketWidth = orDefault(p.BucketWidth, defaultBucketWidth)
	p.DrainLimit = orDefault(p.DrainLimit, defaultDrainLimit)
	switch {
	case p.Sessions < 0:
		return p, fmt.Errorf("plan load: %d sessions: give at least 1", p.Sessions)
	case p.PayloadBytes < workload.WorkBytes:
		return p, fmt.Errorf("plan load: payload of %d bytes: give at least %d, they carry the work", p.PayloadBytes, workload.WorkBytes)
	case p.Duration <= 0:
		return p, errors.New("plan load: no duration: give the window's length, as 1s")
	case p.SLO < 0 || p.Deadline < 0 || p.Warmup < 0:
		return p, errors.New("plan load: SLO, deadline and warm-up cannot be negative: give zero for none")
	case p.BucketWidth > 0 && p.Duration/p.BucketWidth > maxBuckets:
		return p, fmt.Errorf("plan load: more than %d buckets: widen the buckets or shorten the window", maxBuckets)
	}
	return p, nil
}

// limit returns what an answer may take to count as goodput.
func (p *Plan) limit() time.Duration {
	limit := p.SLO
	if limit == 0 {
		limit = longest
	}
	if p.Deadline > 0 {
		limit = min(limit, p.Deadline)
	}
	return limit
}
