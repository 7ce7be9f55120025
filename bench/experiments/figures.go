package experiments

import (
	"context"

	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/simulate"
)

// The figures' names, as they stand in JSON: each ends in its unit.
const (
	figGoodput    = "goodput_per_s"
	figShare      = "goodput_of_capacity_ratio"
	figNet        = "goodput_of_net_capacity_ratio" // of the capacity that explicit credit messages leave
	figThroughput = "throughput_of_capacity_ratio"
	figOffered    = "offered_per_s"
	figP50        = "latency_ns_p50"
	figP99        = "latency_ns_p99"
	figTail       = "latency_of_slo_ratio" // p99
	figSLO        = "slo_ns"
	figDrops      = "drop_ratio"
	figLost       = "lost_ratio" // of the calls that were made: not answered within the SLO
	figUnsent     = "drop_ratio_client"
	figReject     = "reject_latency_ns_p99"
	figRejectSLO  = "reject_latency_of_slo_ratio" // p99
	figExpire     = "expire_latency_ns_p99"
	figExpireSLO  = "expire_latency_of_slo_ratio" // p99
	figPackets    = "packets_per_request"
	figCredits    = "credit_messages_per_request"
	figEvents     = "events_per_request"
	figCuts       = "pool_cut_ratio" // of its updates
	figWake       = "wake_ns_p99"
	figWakeRTT    = "wake_of_rtt_ratio" // p99
	figWoken      = "woken_count"
	figBusy       = "busy_ratio"
	figPending    = "pending_count"
	figViolations = "violation_count"
	figRecovery   = "recovery_ns"
	figDip        = "dip_ratio" // lowest goodput after a spike, of what it settles at
	figHeap       = "heap_bytes_per_client"
	figHost       = "host_cpu_ns_per_call"
	figCalls      = "call_count"              // warm-up included
	figStorm      = "storm_of_capacity_ratio" // answers per second until the last one
	figStormNet   = "storm_of_net_capacity_ratio"
	figAnswered   = "answered_ratio"
	figTurned     = "refusals_per_client"
	figRound1     = "first_round_request_count"
	figRound2     = "second_round_request_count"
	figRound3     = "third_round_request_count"
	figLater      = "later_request_count_mean"
	figBurst      = "burst_call_count"
	figBurstOK    = "burst_answered_count"
	figRefused    = "burst_refused_count"
	figQueued     = "request_queue_ns_max"
)

var kinds = map[string]kind{
	figGoodput:    {"goodput", "k/s", 8, 1, 1e3, report.Count},
	figShare:      {"of capacity", "%", 11, 1, 0.01, report.Percent},
	figNet:        {"of net cap.", "%", 11, 1, 0.01, report.Percent},
	figThroughput: {"throughput", "% cap.", 10, 1, 0.01, report.Percent},
	figOffered:    {"offered", "k/s", 8, 1, 1e3, report.Count},
	figP50:        {"p50", "us", 8, 1, 1e3, report.Duration},
	figP99:        {"p99", "us", 9, 1, 1e3, report.Duration},
	figTail:       {"p99", "% of SLO", 8, 0, 0.01, report.Percent},
	figSLO:        {"SLO", "us", 6, 0, 1e3, report.Duration},
	figDrops:      {"dropped", "%", 7, 2, 0.01, report.Percent},
	figLost:       {"lost", "% calls", 8, 2, 0.01, report.Percent},
	figUnsent:     {"unsent", "%", 7, 1, 0.01, report.Percent},
	figReject:     {"reject p99", "us", 10, 1, 1e3, report.Duration},
	figRejectSLO:  {"reject p99", "% of SLO", 10, 0, 0.01, report.Percent},
	figExpire:     {"gave up p99", "us", 11, 1, 1e3, report.Duration},
	figExpireSLO:  {"gave up p99", "% of SLO", 11, 0, 0.01, report.Percent},
	figPackets:    {"packets", "a request", 9, 3, 1, report.Plain},
	figCredits:    {"credit msgs", "a request", 11, 4, 1, report.Plain},
	figEvents:     {"events", "a request", 9, 2, 1, report.Plain},
	figCuts:       {"pool cuts", "% updates", 9, 2, 0.01, report.Percent},
	figWake:       {"wake p99", "us", 9, 1, 1e3, report.Duration},
	figWakeRTT:    {"wake p99", "RTT", 8, 2, 1, report.Plain},
	figWoken:      {"woken", "", 8, 0, 1, report.Count},
	figBusy:       {"CPUs busy", "%", 9, 1, 0.01, report.Percent},
	figPending:    {"stalled", "calls", 7, 0, 1, report.Count},
	figViolations: {"violations", "", 10, 0, 1, report.Count},
	figRecovery:   {"recovery", "ms", 8, 0, 1e6, report.Duration},
	figDip:        {"lowest after", "%", 12, 1, 0.01, report.Percent},
	figHeap:       {"heap", "B a client", 10, 0, 1, report.Count},
	figHost:       {"host CPU", "ns a call", 10, 0, 1, report.Plain},
	figCalls:      {"calls", "", 9, 0, 1, report.Count},
	figStorm:      {"served", "% cap.", 7, 1, 0.01, report.Percent},
	figStormNet:   {"served", "% of net", 8, 1, 0.01, report.Percent},
	figTurned:     {"refused", "times", 8, 2, 1, report.Plain},
	figAnswered:   {"answered", "%", 8, 1, 0.01, report.Percent},
	figRound1:     {"round 1", "of 4", 8, 0, 1, report.Plain},
	figRound2:     {"round 2", "of 4", 8, 0, 1, report.Plain},
	figRound3:     {"round 3", "of 4", 8, 0, 1, report.Plain},
	figLater:      {"later", "of 4", 8, 2, 1, report.Plain},
	figBurst:      {"burst", "calls", 6, 0, 1, report.Plain},
	figBurstOK:    {"answered", "calls", 8, 0, 1, report.Plain},
	figRefused:    {"refused", "calls", 8, 0, 1, report.Plain},
	figQueued:     {"queued", "us at most", 10, 1, 1e3, report.Duration},
}

// sampleOf is what a run measured, by names.
func sampleOf(r *simulate.Result) Sample {
	slo := float64(r.Scenario.SLO)
	f := map[string]float64{
		figGoodput: r.GoodputPerS, figOffered: r.OfferedPerS, figP50: r.LatencyP50, figP99: r.LatencyP99, figTail: r.LatencyP99 / slo, figSLO: slo,
		figShare: r.GoodputPerS / r.CapacityPerS, figNet: r.GoodputPerS / (r.CapacityPerS * (1 - r.CreditCost)),
		figThroughput: r.ThroughputPerS / r.CapacityPerS, figDrops: r.DropRatio, figUnsent: r.DropRatioClient,
		figPackets: r.PacketsPerRequest, figCredits: r.CreditPerRequest, figEvents: r.EventsPerRequest, figBusy: r.BusyRatio,
		figWake: r.WakeP99, figWakeRTT: r.WakeP99 / float64(r.Scenario.Network.RTT), figWoken: float64(r.Woken + r.Unasked),
		figCalls: float64(r.Calls), figPending: float64(r.Pending), figViolations: float64(len(r.Violations)),
		figReject: r.RejectP99, figRejectSLO: r.RejectP99 / slo, figExpire: r.ExpireP99, figExpireSLO: r.ExpireP99 / slo,
	}
	if r.OfferedPerS > 0 {
		f[figLost] = max(1-r.GoodputPerS/r.OfferedPerS, 0)
	}
	if r.PoolUpdates > 0 {
		f[figCuts] = float64(r.PoolCuts) / float64(r.PoolUpdates)
	}
	s := Sample{Figures: f}
	for _, w := range r.Windows {
		s.Series = append(s.Series, w.GoodputPerS)
	}
	return s
}

// playing makes a job's play of a scenario.
func playing(s simulate.Scenario) func(context.Context, uint64) (Sample, error) {
	return func(ctx context.Context, seed uint64) (Sample, error) {
		s.Seed = seed
		r, err := simulate.Run(ctx, s)
		if err != nil {
			return Sample{}, err
		}
		return sampleOf(r), nil
	}
}
