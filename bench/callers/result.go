package callers

import (
	"slices"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Levels are those of the wire, the least first.
var Levels = [...]sw.Criticality{sw.Sheddable, sw.SheddablePlus, sw.Critical, sw.CriticalPlus}

// Second is what happened in one second from the beginning on. It includes the warm-up.
type Second struct {
	Made     int `json:"made_count"`
	Good     int `json:"good_count"`     // calls that ended with an answer in time
	Answered int `json:"answered_count"` // attempts, whoever still waited for them
}

// Level is what became of the calls of one level.
type Level struct {
	Made     int `json:"made_count"`
	Good     int `json:"good_count"`
	Rejected int `json:"rejected_count"`
	Unsent   int `json:"unsent_count"`
	Lost     int `json:"lost_count"`
}

// Result is what became of the calls that were made after the warm-up; Seconds and Pending are of all.
type Result struct {
	Made     int                `json:"made_count"`
	Good     int                `json:"good_count"`
	Answered int                `json:"answered_count"`
	Rejected int                `json:"rejected_count"` // by the server, or by its handler for want of what it needs
	Unsent   int                `json:"unsent_count"`   // held back at the client
	Lost     int                `json:"lost_count"`     // given up, or failed
	Attempts int                `json:"attempt_count"`  // that callers and runtime made
	Pending  int                `json:"pending_count"`  // attempts that the runtime has not ended at the end
	Outcomes map[string]int     `json:"outcomes"`       // of the attempts that it has, whoever still waited for them
	Levels   [len(Levels)]Level `json:"levels"`
	Seconds  []Second           `json:"seconds"`

	LatencyP50  time.Duration `json:"latency_ns_p50"` // of answered calls
	LatencyP99  time.Duration `json:"latency_ns_p99"`
	LatenessP99 time.Duration `json:"lateness_ns_p99"` // of the callers themselves
	LatenessMax time.Duration `json:"lateness_ns_max"`
}

// second is the one in which an instant lies; nil = none that is counted.
func (r *Result) second(at time.Duration) *Second {
	if i := int(at / time.Second); at >= 0 && i < len(r.Seconds) {
		return &r.Seconds[i]
	}
	return nil
}

// quantile sorts the values; of none it is zero.
func quantile(values []time.Duration, percent int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)*percent-1)/100]
}
