package callers

import (
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Plan is what the callers do.
type Plan struct {
	Method   string               `json:"method"`
	Begin    clock.Time           `json:"begin_ns"` // the first instant, on the machine's monotonic clock; 0 = now
	Arrivals workload.Process     `json:"arrivals"`
	PerS     float64              `json:"rate_per_s"`
	Service  workload.ServiceTime `json:"service_time"` // drawn for each attempt

	Warmup time.Duration `json:"warmup_ns"` // calls made earlier count in no sum
	Length time.Duration `json:"length_ns"` // calls are made until here
	Drain  time.Duration `json:"drain_ns"`  // and waited for so much longer

	// Within is from when a call was made; a later answer is no goodput. 0 = any is.
	Within time.Duration `json:"within_ns"`
	// Deadline is what the runtime is told: of each call; or of each attempt, where callers repeat them by themselves. 0 = nothing.
	Deadline time.Duration `json:"deadline_ns"`
	// Repeatable has the runtime repeat calls, as its client is configured.
	Repeatable bool `json:"repeatable"`
	// Loop is a loop around calls by which callers repeat them themselves; nil = they don't.
	Loop *Loop `json:"loop,omitempty"`
	// Levels has a quarter of the calls matter as each level of criticality says; Told, that they say so.
	Levels bool `json:"levels"`
	Told   bool `json:"levels_told"`

	Seed uint64 `json:"seed"`
}

// Loop is what callers do who know nothing of the runtime's retries: after the time-out they make the same call again, while the first is still under way.
type Loop struct {
	Timeout  time.Duration       `json:"timeout_ns"` // of each attempt
	Attempts int                 `json:"attempts"`
	Budget   client.BudgetConfig `json:"budget"`
}

// Unlimited is a budget that pays for every attempt.
var Unlimited = client.BudgetConfig{Ratio: 10, Burst: 1 << 20}

func (p *Plan) check() error {
	switch {
	case p.PerS < 0 || p.Length <= 0 || p.Warmup < 0 || p.Warmup >= p.Length || p.Drain < 0:
		return fmt.Errorf("plan callers: %v/s for %v, of which %v do not count, and %v more: give a rate and a length that is longer than what does not count", p.PerS, p.Length, p.Warmup, p.Drain)
	case p.Within < 0 || p.Deadline < 0:
		return fmt.Errorf("plan callers: within %v, deadline %v: neither may be negative; 0 = none", p.Within, p.Deadline)
	case p.Loop != nil && (p.Loop.Timeout <= 0 || p.Loop.Attempts < 1):
		return fmt.Errorf("plan callers: %d attempts of %v: give at least one, and a time-out", p.Loop.Attempts, p.Loop.Timeout)
	}
	return nil
}
