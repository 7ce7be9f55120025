package load

import "time"

// Bucket counts the requests that were due within one interval of the window, by outcome.
type Bucket struct {
	StartNs  int64  `json:"start_ns"` // from the start of the window
	Offered  uint64 `json:"offered"`
	Good     uint64 `json:"good"` // OK within the SLO
	OK       uint64 `json:"ok"`
	Rejected uint64 `json:"rejected"`
	Expired  uint64 `json:"expired"`
	Deadline uint64 `json:"deadline"`
	Lost     uint64 `json:"lost"` // peer lost or failed
}

// Share returns the part of the offered requests that was answered within the SLO; an interval without requests
// fails nobody, so its share is 1.
func (b Bucket) Share() float64 {
	if b.Offered == 0 {
		return 1
	}
	return float64(b.Good) / float64(b.Offered)
}

// count adds one outcome.
func (b *Bucket) count(outcome Outcome, good bool) {
	if good {
		b.Good++
	}
	switch outcome {
	case OK:
		b.OK++
	case Rejected:
		b.Rejected++
	case Expired:
		b.Expired++
	case Deadline:
		b.Deadline++
	default:
		b.Lost++
	}
}

// add adds the counts of the same interval in another process.
func (b *Bucket) add(o Bucket) {
	b.Offered += o.Offered
	b.Good += o.Good
	b.OK += o.OK
	b.Rejected += o.Rejected
	b.Expired += o.Expired
	b.Deadline += o.Deadline
	b.Lost += o.Lost
}

// WorstShare returns the smallest share among the buckets that lie wholly within [from, to) of the window, 1 when
// there are none.
func (r *Result) WorstShare(from, to time.Duration) float64 {
	worst := 1.0
	for _, b := range r.Buckets {
		start := time.Duration(b.StartNs)
		if start >= from && start+r.BucketWidth <= to {
			worst = min(worst, b.Share())
		}
	}
	return worst
}

// Recovery returns how long after the instant from of the window the goodput share came to at least share for good,
// that is in every later bucket up to the instant to. It is false when it never did.
func (r *Result) Recovery(from, to time.Duration, share float64) (time.Duration, bool) {
	last := from
	for _, b := range r.Buckets {
		start := time.Duration(b.StartNs)
		if start+r.BucketWidth > from && start < to && b.Share() < share {
			last = start + r.BucketWidth
		}
	}
	return max(last-from, 0), last < to
}
