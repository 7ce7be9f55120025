package experiments

import (
	"context"

	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/suite"
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

var kinds = suite.Kinds{
	figGoodput:    suite.KindOf("goodput", "k/s", 8, 1, 1e3, report.Count),
	figShare:      suite.KindOf("of capacity", "%", 11, 1, 0.01, report.Percent),
	figNet:        suite.KindOf("of net cap.", "%", 11, 1, 0.01, report.Percent),
	figThroughput: suite.KindOf("throughput", "% cap.", 10, 1, 0.01, report.Percent),
	figOffered:    suite.KindOf("offered", "k/s", 8, 1, 1e3, report.Count),
	figP50:        suite.KindOf("p50", "us", 8, 1, 1e3, report.Duration),
	figP99:        suite.KindOf("p99", "us", 9, 1, 1e3, report.Duration),
	figTail:       suite.KindOf("p99", "% of SLO", 8, 0, 0.01, report.Percent),
	figSLO:        suite.KindOf("SLO", "us", 6, 0, 1e3, report.Duration),
	figDrops:      suite.KindOf("dropped", "%", 7, 2, 0.01, report.Percent),
	figLost:       suite.KindOf("lost", "% calls", 8, 2, 0.01, report.Percent),
	figUnsent:     suite.KindOf("unsent", "%", 7, 1, 0.01, report.Percent),
	figReject:     suite.KindOf("reject p99", "us", 10, 1, 1e3, report.Duration),
	figRejectSLO:  suite.KindOf("reject p99", "% of SLO", 10, 0, 0.01, report.Percent),
	figExpire:     suite.KindOf("gave up p99", "us", 11, 1, 1e3, report.Duration),
	figExpireSLO:  suite.KindOf("gave up p99", "% of SLO", 11, 0, 0.01, report.Percent),
	figPackets:    suite.KindOf("packets", "a request", 9, 3, 1, report.Plain),
	figCredits:    suite.KindOf("credit msgs", "a request", 11, 4, 1, report.Plain),
	figEvents:     suite.KindOf("events", "a request", 9, 2, 1, report.Plain),
	figCuts:       suite.KindOf("pool cuts", "% updates", 9, 2, 0.01, report.Percent),
	figWake:       suite.KindOf("wake p99", "us", 9, 1, 1e3, report.Duration),
	figWakeRTT:    suite.KindOf("wake p99", "RTT", 8, 2, 1, report.Plain),
	figWoken:      suite.KindOf("woken", "", 8, 0, 1, report.Count),
	figBusy:       suite.KindOf("CPUs busy", "%", 9, 1, 0.01, report.Percent),
	figPending:    suite.KindOf("stalled", "calls", 7, 0, 1, report.Count),
	figViolations: suite.KindOf("violations", "", 10, 0, 1, report.Count),
	figRecovery:   suite.KindOf("recovery", "ms", 8, 0, 1e6, report.Duration),
	figDip:        suite.KindOf("lowest after", "%", 12, 1, 0.01, report.Percent),
	figHeap:       suite.KindOf("heap", "B a client", 10, 0, 1, report.Count),
	figHost:       suite.KindOf("host CPU", "ns a call", 10, 0, 1, report.Plain),
	figCalls:      suite.KindOf("calls", "", 9, 0, 1, report.Count),
	figStorm:      suite.KindOf("served", "% cap.", 7, 1, 0.01, report.Percent),
	figStormNet:   suite.KindOf("served", "% of net", 8, 1, 0.01, report.Percent),
	figTurned:     suite.KindOf("refused", "times", 8, 2, 1, report.Plain),
	figAnswered:   suite.KindOf("answered", "%", 8, 1, 0.01, report.Percent),
	figRound1:     suite.KindOf("round 1", "of 4", 8, 0, 1, report.Plain),
	figRound2:     suite.KindOf("round 2", "of 4", 8, 0, 1, report.Plain),
	figRound3:     suite.KindOf("round 3", "of 4", 8, 0, 1, report.Plain),
	figLater:      suite.KindOf("later", "of 4", 8, 2, 1, report.Plain),
	figBurst:      suite.KindOf("burst", "calls", 6, 0, 1, report.Plain),
	figBurstOK:    suite.KindOf("answered", "calls", 8, 0, 1, report.Plain),
	figRefused:    suite.KindOf("refused", "calls", 8, 0, 1, report.Plain),
	figQueued:     suite.KindOf("queued", "us at most", 10, 1, 1e3, report.Duration),
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
		seeded := s // several seeds of a job run at the same time
		seeded.Seed = seed
		r, err := simulate.Run(ctx, seeded)
		if err != nil {
			return Sample{}, err
		}
		return sampleOf(r), nil
	}
}
