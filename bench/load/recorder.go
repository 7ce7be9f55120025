package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// What a histogram holds: up to longest, with three digits. The unit is one nanosecond although no clock is that good,
// since the unit is also the resolution of everything below 2048 units.
const (
	longest       = time.Minute
	latencyDigits = 3
)

// newHistogram returns an empty histogram.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest), latencyDigits)
}

// record adds one duration. A longer one than the histogram holds is put into its last cell, a negative one (two
// clocks that disagree by a few ns) into its first: a quantile stays right, and no request vanishes from the count.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, 0), longest))) // within range by construction
}

// timingParts is how many parts Timing has.
const timingParts = 5

// recorder counts what happened to the requests that were due within the window. One goroutine owns it.
type recorder struct {
	from, to clock.Time // the window
	limit    time.Duration
	width    time.Duration

	counts    Counts
	reasons   [256]uint64
	outcomes  [outcomeCount]uint64
	latency   *hdrhistogram.Histogram // of answers, from due
	rejection *hdrhistogram.Histogram // of refusals, from due
	lateness  *hdrhistogram.Histogram // of the generator
	parts     [timingParts]*hdrhistogram.Histogram
	partSums  [timingParts]int64
	timed     uint64
	buckets   []Bucket
}

// newRecorder returns a recorder for the window from..to. An answer within limit of its due instant is goodput.
func newRecorder(from, to clock.Time, limit, width time.Duration) *recorder {
	r := &recorder{
		from: from, to: to, limit: limit, width: width,
		latency: newHistogram(), rejection: newHistogram(), lateness: newHistogram(),
	}
	for i := range r.parts {
		r.parts[i] = newHistogram()
	}
	if width > 0 {
		r.buckets = make([]Bucket, (to.Sub(from)+width-1)/width)
		for i := range r.buckets {
			r.buckets[i].StartNs = int64(width) * int64(i)
		}
	}
	return r
}

// measured reports whether a request that was due then counts.
func (r *recorder) measured(due clock.Time) bool { return due >= r.from && due < r.to }

// bucket returns the bucket of an instant within the window, nil when the run keeps none.
func (r *recorder) bucket(due clock.Time) *Bucket {
	if len(r.buckets) == 0 {
		return nil
	}
	return &r.buckets[due.Sub(r.from)/r.width]
}

// offered counts a request that came due and was looked at now; issued tells whether there was a free Op for it.
func (r *recorder) offered(due, now clock.Time, issued bool) {
	if !r.measured(due) {
		return
	}
	r.counts.Offered++
	if b := r.bucket(due); b != nil {
		b.Offered++
	}
	if !issued {
		r.counts.Unissued++
		return
	}
	r.counts.Issued++
	record(r.lateness, now.Sub(due))
}

// finished counts the outcome of a request.
func (r *recorder) finished(op *Op) {
	if op.Outcome == OK && r.measured(op.Finished) {
		r.counts.AnsweredInWindow++ // whenever it was due: throughput is what came out, not what went in
	}
	if !r.measured(op.Due) {
		return
	}
	outcome := op.Outcome
	if outcome >= outcomeCount {
		outcome = Failed
	}
	r.outcomes[outcome]++
	took := op.Finished.Sub(op.Due)
	good := outcome == OK && took <= r.limit
	if b := r.bucket(op.Due); b != nil {
		b.count(outcome, good)
	}
	if good {
		r.counts.Good++
	}
	switch outcome {
	case OK:
		record(r.latency, took)
		if op.Timed {
			r.split(&op.Timing)
		}
	case Rejected:
		record(r.rejection, took)
		r.reasons[op.Reason]++
	}
}

// split adds the parts of one answer's latency.
func (r *recorder) split(t *Timing) {
	r.timed++
	for i, d := range [timingParts]time.Duration{t.ClientQueue, t.Network, t.PacketQueue, t.RequestQueue, t.Service} {
		r.partSums[i] += int64(d)
		record(r.parts[i], d)
	}
}
