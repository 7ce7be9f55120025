package simulate

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// Result is what came of a scenario in its measured time. Latencies are in nanoseconds from when the call was made, the wait at the client
// included, and zero where there is nothing to measure.
type Result struct {
	Scenario Scenario `json:"scenario"` // with the defaults put in

	CapacityPerS   float64 `json:"capacity_per_s"` // of the server, with nothing refused
	OfferedPerS    float64 `json:"offered_per_s"`  // calls that were made
	GoodputPerS    float64 `json:"goodput_per_s"`  // answered within the SLO
	ThroughputPerS float64 `json:"throughput_per_s"`

	LatencyP50 float64 `json:"latency_ns_p50"` // of answers
	LatencyP99 float64 `json:"latency_ns_p99"`
	RejectMean float64 `json:"reject_ns_mean"` // the same, on average
	RejectP50  float64 `json:"reject_ns_p50"`  // until a caller learns that the server refused its call
	RejectP99  float64 `json:"reject_ns_p99"`
	ExpireP50  float64 `json:"expire_ns_p50"` // until a caller learns that its call was never sent, since no credit came in time
	ExpireP99  float64 `json:"expire_ns_p99"`

	Outcomes map[string]uint64 `json:"outcomes"` // of calls

	DropRatio       float64 `json:"drop_ratio"`        // refused by the server, of the requests that reached it with a credit
	DropRatioClient float64 `json:"drop_ratio_client"` // ended at the client without being sent, of the calls
	ReceivedPerS    float64 `json:"received_per_s"`    // packets, by the server
	SentPerS        float64 `json:"sent_per_s"`
	CreditPerS      float64 `json:"credit_messages_per_s"` // explicit credit updates and probes
	DelayMean       float64 `json:"delay_ns_mean"`         // the server's signal, at each update of the pool

	// What it takes, for each request that reached the server with a credit.
	PacketsPerRequest float64 `json:"packets_per_request"`         // both ways
	CreditPerRequest  float64 `json:"credit_messages_per_request"` // explicit credit updates and probes
	EventsPerRequest  float64 `json:"events_per_request"`          // of the simulation: packets, timers and CPUs of both ends
	CreditCost        float64 `json:"credit_cost_ratio"`           // of the server's CPU time, for explicit credit updates and probes

	PoolUpdates uint64   `json:"pool_update_count"`
	PoolCuts    uint64   `json:"pool_cut_count"` // updates that made the pool smaller
	BusyRatio   float64  `json:"busy_ratio"`     // of the server's CPUs, by handlers that compute
	WakeP99     float64  `json:"wake_ns_p99"`    // how long an answered call waited for a credit, of those that had to
	Woken       uint64   `json:"woken_count"`    // calls that had to
	Unasked     uint64   `json:"unasked_count"`  // calls that had none and need not wait: the server invited them
	LastAnswer  Duration `json:"last_answer"`    // when the last answer came, after the warm-up

	Windows []WindowResult `json:"windows,omitempty"`

	Calls      uint64   `json:"calls"`      // in all, warm-up included
	Pending    uint64   `json:"pending"`    // of them, without an outcome at the end
	Violations []string `json:"violations"` // of what must never happen
}

// WindowResult is a slice of the measured time: of what ended in it.
type WindowResult struct {
	End         Duration `json:"end"` // after the warm-up
	GoodputPerS float64  `json:"goodput_per_s"`
	LatencyP99  float64  `json:"latency_ns_p99"` // zero without any answer
	RejectMean  float64  `json:"reject_ns_mean"` // zero without any refusal
}

// What a histogram holds: up to a minute, with three digits.
const (
	longest = time.Minute
	digits  = 3
)

// recorder counts what ends in the measured time. Rates are of what ends in it: throughput is what comes out.
type recorder struct {
	play             *play
	started          bool
	before           dispatcher.Snapshot
	madeBefore       uint64
	eventsBefore     uint64
	computedBefore   time.Duration
	waits            *hdrhistogram.Histogram
	lastAnswer       time.Duration
	outcomes         [32]uint64
	calls, good      uint64
	latency, refused *hdrhistogram.Histogram
	expired          *hdrhistogram.Histogram
	windows          []window
}

// window is one slice of time.
type window struct {
	good          uint64
	latency       *hdrhistogram.Histogram
	rejects       uint64
	rejectLatency time.Duration
}

func newRecorder(p *play) *recorder {
	r := &recorder{play: p, latency: newHistogram(), refused: newHistogram(), waits: newHistogram(), expired: newHistogram()}
	if p.Window > 0 {
		r.windows = make([]window, (p.Measure+p.Window-1)/p.Window)
		for i := range r.windows {
			r.windows[i].latency = newHistogram()
		}
	}
	return r
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(longest), digits) }

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, 0), longest))) // within its bounds by construction
}

// begin is the end of the warm-up.
func (r *recorder) begin() {
	r.started = true
	r.before = r.play.machine.Dispatcher().Snapshot()
	r.madeBefore = r.play.world.Checks().Calls
	r.eventsBefore, r.computedBefore = r.play.world.Events(), r.play.machine.Computed()
	if r.play.Begun != nil {
		r.play.Begun()
	}
}

func (r *recorder) observe(o *sim.Observation) {
	if !r.started {
		return
	}
	r.calls++
	r.outcomes[o.Call.Outcome]++
	w := r.window(r.play.world.Elapsed() - r.play.begin())
	switch o.Call.Outcome {
	case dispatcher.OutcomeOK:
		good := o.Latency <= time.Duration(r.play.SLO)
		record(r.latency, o.Latency)
		if wait := o.Call.Timing.ClientQueue; wait > 0 {
			record(r.waits, wait)
		}
		r.lastAnswer = r.play.world.Elapsed() - r.play.begin()
		if good {
			r.good++
		}
		if w != nil {
			record(w.latency, o.Latency)
			if good {
				w.good++
			}
		}
	case dispatcher.OutcomeExpired:
		record(r.expired, o.Latency)
	case dispatcher.OutcomeRejected, dispatcher.OutcomeUnavailable: // at the door, or at the gate of a lock
		record(r.refused, o.Latency)
		if w != nil {
			w.rejects++
			w.rejectLatency += o.Latency
		}
	}
}

// window is that of an instant of the measured time; nil when none are kept.
func (r *recorder) window(at time.Duration) *window {
	if len(r.windows) == 0 {
		return nil
	}
	return &r.windows[min(int(at/time.Duration(r.play.Window)), len(r.windows)-1)]
}

func (r *recorder) result(p *play) *Result {
	span := time.Duration(p.Measure).Seconds()
	now := p.machine.Dispatcher().Snapshot()
	checks := p.world.Checks()
	out := &Result{
		Scenario: p.Scenario, CapacityPerS: p.Capacity(),
		GoodputPerS: float64(r.good) / span, ThroughputPerS: float64(r.latency.TotalCount()) / span, OfferedPerS: float64(checks.Calls-r.madeBefore) / span,
		LatencyP50: quantile(r.latency, 50), LatencyP99: quantile(r.latency, 99),
		RejectMean: r.refused.Mean(), RejectP50: quantile(r.refused, 50), RejectP99: quantile(r.refused, 99),
		Outcomes:     make(map[string]uint64),
		ReceivedPerS: float64(now.PacketsReceived-r.before.PacketsReceived) / span, SentPerS: float64(now.PacketsSent-r.before.PacketsSent) / span,
		CreditPerS: float64(now.CreditUpdates-r.before.CreditUpdates+now.Probes-r.before.Probes) / span,
		DropRatio:  ratio(now.RejectedAll()-r.before.RejectedAll()+r.outcomes[dispatcher.OutcomeUnavailable], now.Offered-r.before.Offered),
		Calls:      checks.Calls, Pending: checks.Pending(), Violations: checks.Violations(),
		PoolUpdates: now.Updates - r.before.Updates, PoolCuts: now.Cuts - r.before.Cuts,
		WakeP99: quantile(r.waits, 99), Woken: uint64(r.waits.TotalCount()), Unasked: now.Unasked - r.before.Unasked, LastAnswer: Duration(r.lastAnswer),
	}
	r.effort(p, out, &now)
	if n := now.Updates - r.before.Updates; n > 0 {
		out.DelayMean = float64(now.DelaySum-r.before.DelaySum) / float64(n)
	}
	out.ExpireP50, out.ExpireP99 = quantile(r.expired, 50), quantile(r.expired, 99)
	var unsent uint64
	for o, n := range r.outcomes {
		if n == 0 {
			continue
		}
		outcome := dispatcher.Outcome(o)
		out.Outcomes[outcome.String()] = n
		switch outcome {
		case dispatcher.OutcomeExpired, dispatcher.OutcomeQueueFull, dispatcher.OutcomeThrottled, dispatcher.OutcomeBreakerOpen:
			unsent += n
		}
	}
	out.DropRatioClient = ratio(unsent, r.calls)
	for i, w := range r.windows {
		out.Windows = append(out.Windows, w.result(min(Duration(i+1)*p.Window, p.Measure), time.Duration(p.Window).Seconds()))
	}
	return out
}

// effort is what the run took, in messages and in time of the server's CPUs. With a drain, that is in it.
func (r *recorder) effort(p *play, out *Result, now *dispatcher.Snapshot) {
	updates, probes := now.CreditUpdates-r.before.CreditUpdates, now.Probes-r.before.Probes
	if requests := float64(now.Offered - r.before.Offered); requests > 0 {
		out.PacketsPerRequest = float64(now.PacketsReceived-r.before.PacketsReceived+now.PacketsSent-r.before.PacketsSent) / requests
		out.CreditPerRequest = float64(updates+probes) / requests
		out.EventsPerRequest = float64(p.world.Events()-r.eventsBefore) / requests
	}
	cpus := float64(p.Server.CPUs) * float64(p.Measure+p.Drain)
	costs := p.Server.Costs
	out.CreditCost = (float64(updates)*float64(costs.Credit) + float64(probes)*float64(costs.Receive)) / cpus
	out.BusyRatio = float64(p.machine.Computed()-r.computedBefore) / cpus
}

func (w *window) result(end Duration, span float64) WindowResult {
	out := WindowResult{End: end, GoodputPerS: float64(w.good) / span, LatencyP99: quantile(w.latency, 99)}
	if w.rejects > 0 {
		out.RejectMean = float64(w.rejectLatency) / float64(w.rejects)
	}
	return out
}

// quantile is zero for an empty histogram.
func quantile(h *hdrhistogram.Histogram, percent float64) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return float64(h.ValueAtQuantile(percent))
}

func ratio(part, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return math.Min(float64(part)/float64(of), 1)
}
