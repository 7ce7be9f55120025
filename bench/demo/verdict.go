package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// highest is the step of an arm at the highest load.
func (r *Result) highest(scheme string) (best Step) {
	for _, s := range r.Steps {
		if s.Arm == label(scheme) && s.Load >= best.Load {
			best = s
		}
	}
	return best
}

// recovery is the median over all repetitions of the share within the SLO, bucket by bucket, and its worst value from the
// grace on.
func (r *Result) recovery() (median []float64, worst float64) {
	if len(r.Falls) == 0 {
		return nil, 0
	}
	count := len(r.Falls[0].buckets)
	for i := range count {
		var shares []float64
		for _, f := range r.Falls {
			if i < len(f.buckets) {
				shares = append(shares, f.buckets[i].Share())
			}
		}
		slices.Sort(shares)
		median = append(median, shares[len(shares)/2])
	}
	from := r.Falls[0].at + int(recoveryGrace/bucketWidth)
	return median, slices.Min(median[min(from, count-1):])
}

// timeline shows the fall of the load in words: the share within the SLO of each bucket, shortly before and after.
func (r *Result) timeline() string {
	const before, after = 5, 15
	median, _ := r.recovery()
	at := r.Falls[0].at
	var b strings.Builder
	fmt.Fprintf(&b, "Step from %.1fx to %.0fx and back to %.1fx, %% within the SLO of each %v around the fall (median of %d): ",
		recoveredAt, overloadAt, recoveredAt, bucketWidth, len(r.Falls))
	for i := max(at-before, 0); i < min(at+after, len(median)); i++ {
		if i == at {
			b.WriteString("|")
		}
		fmt.Fprintf(&b, " %.0f", 100*median[i])
		if i == at-1 {
			b.WriteString(" ")
		}
	}
	return b.String()
}

// judge compares with what is expected, and says in one sentence what was seen.
func (r *Result) judge() {
	credits, none := r.highest(controlled), r.highest(uncontrolled)
	_, worst := r.recovery()
	good, bare := credits.share(), none.share()
	rejected := credits.RejectedPerS / max(credits.OfferedPerS, 1)
	r.check("capacity, of one request per service time (a slow or busy host has less)", r.Calibration.capacityPerS*r.service.Seconds(), capacityMin, true)
	r.check("goodput with credits, of capacity", good, goodputMin, true)
	r.check("rejected with credits", rejected, rejectedMax, false)
	r.check("goodput without control, of capacity", bare, controlGoodMax, false)
	r.check("within the SLO after the load fell", worst, recoveredShare, true)
	r.Passed = len(r.missed) == 0
	r.Verdict = fmt.Sprintf("At %.1f times its capacity the server kept %.0f %% of it within %v with credits (p99 %v, %.1f %% rejected) and "+
		"%.0f %% without control (p99 %v); after the load fell to half, at least %.0f %% of every %v were good again from %v on.",
		credits.Load, 100*good, r.Calibration.slo, round(credits.LatencyNsP99), 100*rejected,
		100*bare, round(none.LatencyNsP99), 100*worst, bucketWidth, recoveryGrace)
	if !r.Passed {
		r.Verdict += " Not as expected: " + r.Missed() + "."
	}
}

// doubtful is the number of steps whose generator could not keep its schedule.
func (r *Result) doubtful() (n int) {
	for _, s := range r.Steps {
		if len(s.Failures) > 0 {
			n++
		}
	}
	return n
}

// check notes a figure that is not as expected.
func (r *Result) check(name string, got, want float64, atLeast bool) {
	word := "at most"
	if atLeast {
		word = "at least"
	}
	if atLeast && got < want || !atLeast && got > want {
		r.missed = append(r.missed, fmt.Sprintf("%s: %.1f %%, expected %s %.0f %%", name, 100*got, word, 100*want))
	}
}

// Missed says which figures are not as expected.
func (r *Result) Missed() string { return strings.Join(r.missed, "; ") }

func round(ns int64) time.Duration {
	d := time.Duration(ns)
	if d > time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Microsecond)
}
