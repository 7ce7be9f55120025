package load

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of a Result.
const (
	KindOpenLoop   = "open_loop"
	KindClosedLoop = "closed_loop"
)

// Counts are the books of a run. They balance: Offered = Issued + Unissued, and Issued is the sum of the outcomes and
// Unanswered. All count requests that were due within the window, but for AnsweredInWindow and Repeated.
type Counts struct {
	Offered    uint64 `json:"offered"`
	Unissued   uint64 `json:"unissued"` // came due when MaxOutstanding requests were out
	Issued     uint64 `json:"issued"`
	OK         uint64 `json:"ok"`
	Rejected   uint64 `json:"rejected"`
	Expired    uint64 `json:"expired"`
	Deadline   uint64 `json:"deadline"`
	PeerLost   uint64 `json:"peer_lost"`
	Failed     uint64 `json:"failed"`
	Unanswered uint64 `json:"unanswered"` // no outcome within the drain limit: a fault of the Issuer

	Good             uint64 `json:"good"`               // OK within the SLO and the deadline, from the due instant
	AnsweredInWindow uint64 `json:"answered_in_window"` // OK that arrived within the window, whenever due
	Repeated         uint64 `json:"repeated"`           // outcomes beyond the first: a fault of the Issuer
}

// setOutcomes fills in the outcomes and what is missing to balance the books.
func (c *Counts) setOutcomes(n [outcomeCount]uint64) {
	c.OK, c.Rejected, c.Expired = n[OK], n[Rejected], n[Expired]
	c.Deadline, c.PeerLost, c.Failed = n[Deadline], n[PeerLost], n[Failed]
	c.Unanswered = c.Issued - (c.OK + c.Rejected + c.Expired + c.Deadline + c.PeerLost + c.Failed)
}

// add adds the counts of another run.
func (c *Counts) add(o Counts) {
	c.Offered += o.Offered
	c.Unissued += o.Unissued
	c.Issued += o.Issued
	c.OK += o.OK
	c.Rejected += o.Rejected
	c.Expired += o.Expired
	c.Deadline += o.Deadline
	c.PeerLost += o.PeerLost
	c.Failed += o.Failed
	c.Unanswered += o.Unanswered
	c.Good += o.Good
	c.AnsweredInWindow += o.AnsweredInWindow
	c.Repeated += o.Repeated
}

// Quantiles summarize one distribution of durations.
type Quantiles struct {
	MeanNs float64 `json:"ns_mean"`
	P99Ns  int64   `json:"ns_p99"`
}

// Split is the mean and the p99 of each part of the answers' latency; see Timing.
type Split struct {
	ClientQueue  Quantiles `json:"client_queue"`
	Network      Quantiles `json:"network"`
	PacketQueue  Quantiles `json:"packet_queue"`
	RequestQueue Quantiles `json:"request_queue"`
	Service      Quantiles `json:"service"`
}

// Result is what a run measured and everything that is needed to repeat it. Rates and quantiles are derived from the
// counts and histograms, so that merged results are as exact as single ones.
type Result struct {
	Kind string `json:"kind"`
	Plan
	Arrivals      string        `json:"arrivals,omitempty"`          // open loop
	RatePerS      float64       `json:"rate_per_s,omitempty"`        // open loop: what was asked for
	Steps         []Step        `json:"steps,omitempty"`             // open loop
	LatenessLimit time.Duration `json:"lateness_limit_ns,omitempty"` // open loop
	Outstanding   int           `json:"outstanding,omitempty"`       // closed loop
	ProcessCount  int           `json:"process_count"`               // how many results were merged into this one

	OfferedPerS    float64 `json:"offered_per_s"`    // due
	GoodputPerS    float64 `json:"goodput_per_s"`    // answered within the SLO and the deadline
	ThroughputPerS float64 `json:"throughput_per_s"` // answered within the window
	RejectedPerS   float64 `json:"rejected_per_s"`
	ExpiredPerS    float64 `json:"expired_per_s"`
	DeadlinePerS   float64 `json:"deadline_per_s"`
	PeerLostPerS   float64 `json:"peer_lost_per_s"`
	FailedPerS     float64 `json:"failed_per_s"`

	LatencyNsMean      float64 `json:"latency_ns_mean"` // of answers, from due
	LatencyNsP50       int64   `json:"latency_ns_p50"`
	LatencyNsP90       int64   `json:"latency_ns_p90"`
	LatencyNsP99       int64   `json:"latency_ns_p99"`
	LatencyNsP999      int64   `json:"latency_ns_p999"`
	LatencyNsMax       int64   `json:"latency_ns_max"`
	RejectLatencyNsP50 int64   `json:"reject_latency_ns_p50"` // of refusals, from due
	RejectLatencyNsP99 int64   `json:"reject_latency_ns_p99"`
	LatenessNsP50      int64   `json:"lateness_ns_p50"` // of the generator itself
	LatenessNsP99      int64   `json:"lateness_ns_p99"`
	LatenessNsMax      int64   `json:"lateness_ns_max"`

	Split        *Split             `json:"split,omitempty"` // nil when the Issuer gave no Timing
	TimedCount   uint64             `json:"timed_count,omitempty"`
	TimingSumsNs [timingParts]int64 `json:"timing_sums_ns"` // in the order of Timing

	Counts        Counts            `json:"counts"`
	RejectReasons map[string]uint64 `json:"reject_reasons,omitempty"`
	Buckets       []Bucket          `json:"buckets,omitempty"`

	Failures   []string    `json:"failures,omitempty"`   // why the run is not to be believed, each with its cure
	Histograms *Histograms `json:"histograms,omitempty"` // set to nil for a short output; without them no Merge
}

// Err returns the failures of the run as one error, nil when it is to be believed.
func (r *Result) Err() error {
	errs := make([]error, len(r.Failures))
	for i, f := range r.Failures {
		errs[i] = errors.New(f)
	}
	return errors.Join(errs...)
}

// Merge adds the result of another process that ran the same plan at the same time, on its own sessions.
func (r *Result) Merge(o *Result) error {
	switch {
	case r.Histograms == nil || o.Histograms == nil:
		return errors.New("merge results: histograms are missing: merge before leaving them out")
	case r.Kind != o.Kind || r.Duration != o.Duration || r.SLO != o.SLO || r.Deadline != o.Deadline:
		return errors.New("merge results: kind, duration, SLO and deadline must agree: run one plan in every process")
	case r.BucketWidth != o.BucketWidth || len(r.Buckets) != len(o.Buckets):
		return errors.New("merge results: the buckets differ: run one plan in every process")
	}
	if err := r.Histograms.merge(o.Histograms); err != nil {
		return err
	}
	r.Counts.add(o.Counts)
	for i := range r.Buckets {
		r.Buckets[i].add(o.Buckets[i])
	}
	if r.RejectReasons == nil {
		r.RejectReasons = map[string]uint64{}
	}
	for reason, n := range o.RejectReasons {
		r.RejectReasons[reason] += n
	}
	r.TimedCount += o.TimedCount
	for i, sum := range o.TimingSumsNs {
		r.TimingSumsNs[i] += sum
	}
	r.Sessions += o.Sessions
	r.Outstanding += o.Outstanding
	r.RatePerS += o.RatePerS
	r.Steps = addSteps(r.Steps, o.Steps)
	r.ProcessCount += o.ProcessCount
	r.summarize()
	return nil
}

// addSteps adds the rates of two schedules that change at the same instants. A schedule that differs is dropped: the
// offered load of the buckets tells what happened.
func addSteps(a, b []Step) []Step {
	if len(a) != len(b) {
		return nil
	}
	sum := make([]Step, len(a))
	for i := range a {
		if a[i].At != b[i].At {
			return nil
		}
		sum[i] = Step{At: a[i].At, RatePerS: a[i].RatePerS + b[i].RatePerS}
	}
	return sum
}

// summarize derives rates, quantiles and failures from counts and histograms.
func (r *Result) summarize() {
	perSecond := func(n uint64) float64 { return float64(n) / r.Duration.Seconds() }
	r.OfferedPerS = perSecond(r.Counts.Offered)
	r.GoodputPerS = perSecond(r.Counts.Good)
	r.ThroughputPerS = perSecond(r.Counts.AnsweredInWindow)
	r.RejectedPerS = perSecond(r.Counts.Rejected)
	r.ExpiredPerS = perSecond(r.Counts.Expired)
	r.DeadlinePerS = perSecond(r.Counts.Deadline)
	r.PeerLostPerS = perSecond(r.Counts.PeerLost)
	r.FailedPerS = perSecond(r.Counts.Failed)

	h := r.Histograms
	r.LatencyNsMean = h.Latency.mean()
	r.LatencyNsP50 = h.Latency.quantile(50)
	r.LatencyNsP90 = h.Latency.quantile(90)
	r.LatencyNsP99 = h.Latency.quantile(99)
	r.LatencyNsP999 = h.Latency.quantile(99.9)
	r.LatencyNsMax = h.Latency.max()
	r.RejectLatencyNsP50 = h.Reject.quantile(50)
	r.RejectLatencyNsP99 = h.Reject.quantile(99)
	r.LatenessNsP50 = h.Lateness.quantile(50)
	r.LatenessNsP99 = h.Lateness.quantile(99)
	r.LatenessNsMax = h.Lateness.max()
	r.Split = r.split()
	r.Failures = r.failures()
}

// split returns the parts of the latency, nil when no answer was timed.
func (r *Result) split() *Split {
	if r.TimedCount == 0 {
		return nil
	}
	part := func(i int) Quantiles {
		return Quantiles{
			MeanNs: float64(r.TimingSumsNs[i]) / float64(r.TimedCount),
			P99Ns:  r.Histograms.Parts[i].quantile(99),
		}
	}
	return &Split{ClientQueue: part(0), Network: part(1), PacketQueue: part(2), RequestQueue: part(3), Service: part(4)}
}

// failures says why the run is not to be believed.
func (r *Result) failures() []string {
	var why []string
	if r.LatenessLimit > 0 && r.LatenessNsP99 > int64(r.LatenessLimit) {
		why = append(why, fmt.Sprintf("the generator could not keep its schedule: p99 lateness %v, at most %v allowed: give it a CPU of its own or lower the rate",
			time.Duration(r.LatenessNsP99), r.LatenessLimit))
	}
	if n := r.Counts.Unissued; n > 0 {
		why = append(why, fmt.Sprintf("%d requests came due with every Op in flight and were not issued: raise MaxOutstanding or set a deadline", n))
	}
	if n := r.Counts.Unanswered; n > 0 {
		why = append(why, fmt.Sprintf("%d requests had no outcome %v after the load ended: the issuer lost them, or the drain limit is below their deadline", n, r.DrainLimit))
	}
	if n := r.Counts.Repeated; n > 0 {
		why = append(why, fmt.Sprintf("%d requests had more than one outcome: the issuer must call Done once", n))
	}
	return why
}
