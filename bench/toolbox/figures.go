package toolbox

import (
	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/suite"
)

// The figures' names, as they stand in JSON: each ends in its unit.
const (
	figGoodput      = "goodput_per_s"
	figShare        = "goodput_of_capacity_ratio"
	figThroughput   = "throughput_per_s"
	figBacklog      = "backlog_count"
	figP99          = "latency_ns_p99"
	figErrors       = "error_ratio"
	figInService    = "in_service_count" // or queued
	figLost         = "lost_ratio"
	figWasted       = "wasted_work_ratio"
	figHeldMax      = "held_count_max"
	figHeldEnd      = "held_count_end"
	figCalls        = "call_count"
	figDone         = "done_ns"
	figOffered      = "offered_per_s"
	figLocal        = "local_refusal_ratio"
	figLoad         = "load_of_bound_ratio"
	figAccepted     = "accepted_per_s"
	figFirst        = "first_refusal_ns"
	figRecovery     = "recovery_ns"
	figRefusals     = "refused_count"
	figQueueMax     = "queue_count_max"
	figQueueEnd     = "queue_count_end"
	figAfter        = "goodput_after_ratio"
	figAttempts     = "attempts_per_call"
	figSlow         = "slow_ratio"
	figLoadTimes    = "load_ratio"
	figHits         = "hit_ratio"
	figWarmHits     = "hit_ratio_warm"
	figShareOffered = "goodput_of_offered_ratio"
	figRestarts     = "restart_count"
	figLevel4       = "critical_plus_answered_ratio"
	figLevel3       = "critical_answered_ratio"
	figLevel2       = "sheddable_plus_answered_ratio"
	figLevel1       = "sheddable_answered_ratio"
	figLeast        = "least_level_of_goodput_ratio"
	figCheap        = "cheap_answered_ratio"
	figExpensive    = "expensive_answered_ratio"
	figCheapWork    = "cheap_of_work_ratio"
	figFan          = "leaf_attempts_per_call"
	figAnsweredNo   = "told_ratio"    // ended by the answer of a handler that something is not there
	figRefused      = "refused_ratio" // of the calls: by the server, or by their client
)

var kinds = suite.Kinds{
	figGoodput:      suite.KindOf("goodput", "/s", 8, 1, 1, report.Count),
	figShare:        suite.KindOf("of capacity", "%", 11, 1, 0.01, report.Percent),
	figThroughput:   suite.KindOf("served", "/s", 8, 1, 1, report.Count),
	figBacklog:      suite.KindOf("backlog", "calls", 8, 0, 1, report.Count),
	figP99:          suite.KindOf("p99", "ms", 9, 1, 1e6, report.Duration),
	figErrors:       suite.KindOf("errors", "%", 8, 1, 0.01, report.Percent),
	figInService:    suite.KindOf("at server", "requests", 9, 0, 1, report.Count),
	figLost:         suite.KindOf("lost", "%", 8, 1, 0.01, report.Percent),
	figWasted:       suite.KindOf("wasted", "% of work", 9, 1, 0.01, report.Percent),
	figHeldMax:      suite.KindOf("held", "at most", 8, 0, 1, report.Count),
	figHeldEnd:      suite.KindOf("held", "at end", 8, 0, 1, report.Count),
	figCalls:        suite.KindOf("calls", "", 8, 0, 1, report.Count),
	figDone:         suite.KindOf("done", "s", 8, 2, 1e9, report.Duration),
	figOffered:      suite.KindOf("offered", "/s", 8, 1, 1, report.Count),
	figLocal:        suite.KindOf("local", "% refused", 9, 1, 0.01, report.Percent),
	figLoad:         suite.KindOf("load", "% of K C", 8, 1, 0.01, report.Percent),
	figAccepted:     suite.KindOf("accepted", "/s", 8, 1, 1, report.Count),
	figFirst:        suite.KindOf("first", "s", 8, 2, 1e9, report.Duration),
	figRecovery:     suite.KindOf("recovered", "s", 9, 1, 1e9, report.Duration),
	figRefusals:     suite.KindOf("refused", "", 8, 0, 1, report.Count),
	figQueueMax:     suite.KindOf("queue", "at most", 8, 0, 1, report.Count),
	figQueueEnd:     suite.KindOf("queue", "at end", 8, 0, 1, report.Count),
	figAfter:        suite.KindOf("after", "% offered", 9, 1, 0.01, report.Percent),
	figAttempts:     suite.KindOf("attempts", "a call", 8, 2, 1, report.Plain),
	figSlow:         suite.KindOf("slow", "% requests", 10, 2, 0.01, report.Percent),
	figLoadTimes:    suite.KindOf("load", "times", 8, 3, 1, report.Plain),
	figHits:         suite.KindOf("hits", "%", 8, 1, 0.01, report.Percent),
	figWarmHits:     suite.KindOf("warm hits", "%", 9, 1, 0.01, report.Percent),
	figShareOffered: suite.KindOf("goodput", "% offered", 9, 1, 0.01, report.Percent),
	figRestarts:     suite.KindOf("restarts", "", 8, 0, 1, report.Count),
	figLevel4:       suite.KindOf("critical+", "% answered", 10, 2, 0.01, report.Percent),
	figLevel3:       suite.KindOf("critical", "% answered", 10, 2, 0.01, report.Percent),
	figLevel2:       suite.KindOf("sheddable+", "% answered", 10, 2, 0.01, report.Percent),
	figLevel1:       suite.KindOf("sheddable", "% answered", 10, 2, 0.01, report.Percent),
	figLeast:        suite.KindOf("least level", "% answers", 11, 2, 0.01, report.Percent),
	figCheap:        suite.KindOf("cheap", "% answered", 10, 2, 0.01, report.Percent),
	figExpensive:    suite.KindOf("expensive", "% answered", 10, 2, 0.01, report.Percent),
	figCheapWork:    suite.KindOf("cheap", "% of work", 9, 1, 0.01, report.Percent),
	figFan:          suite.KindOf("attempts", "a call", 9, 3, 1, report.Plain),
	figAnsweredNo:   suite.KindOf("told", "% calls", 8, 1, 0.01, report.Percent),
	figRefused:      suite.KindOf("refused", "%", 8, 1, 0.01, report.Percent),
}
