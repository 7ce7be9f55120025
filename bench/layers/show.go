//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// The bounds, for the worst round each; those of control arms for the median, since whatever the machine takes from them makes them look better.
const (
	attemptsMax = 1.33 // of a budget of 10 % in each of three layers: 1.1^3. The defaults come to 1.1, since only the user repeats.
	fanMin      = 26.5 // of 27, three times in three layers: the machine may keep a call from an attempt in a hundred
	fanHangs    = 8    // of 27, two in three layers: for a third there may be no time left, by what the leaf is known to take, and that cannot be switched off
	wholeMax    = 5 * time.Second
	reachedMin  = 0.99

	// What a budget adds to its tenth in a run: it begins full, and has a floor of one in ten seconds.
	budgetRatio = 0.1
	budgetBurst = 10
	budgetFloor = 0.1 // a second
)

// The retransmissions of an attempt: the first is due when an answer would be late even from a server about to refuse (0.8 of the SLO), each of the next
// after twice as long, but all after at most resendMax (dispatcher, rtoMax).
const (
	resendMax   = 100 * time.Millisecond
	resendFirst = min(slo*8/10, resendMax)
)

// packetsMax bounds the packets of an attempt that nobody answers: its request, its repetitions for as long as it may take, and the word that it is cancelled.
func packetsMax(life time.Duration) float64 {
	n := 2.0
	for at, wait := resendFirst, resendFirst; at < life; at += wait {
		n++
		wait = min(2*wait, resendMax)
	}
	return n
}

// budgets is what a budget in each layer allows for each of so many calls in so much time.
func budgets(calls int, in time.Duration) float64 {
	extra := budgetRatio + (budgetBurst+budgetFloor*in.Seconds()+1)/float64(max(calls, 1))
	return math.Pow(1+extra, attemptsEach)
}

func show(r *prove.Run, s settings, m measured) error {
	return errors.Join(table(r, m.results), cancelTable(r, m.cancelled), bounds(r, s, m))
}

func table(r *prove.Run, results []result) error {
	t := report.NewTable(r.Out, false,
		report.Column{Title: "leaf", Width: 11, Left: true},
		report.Column{Title: "arm", Width: 8, Left: true},
		report.Column{Title: "round", Width: 5},
		report.Column{Title: "requests", Unit: "in trouble", Width: 10},
		report.Column{Title: "attempts", Unit: "a request", Width: 9, Decimals: 3},
		report.Column{Title: "of whole", Unit: "a request", Width: 9, Decimals: 3},
		report.Column{Title: "most", Width: 4},
		report.Column{Title: "packets", Unit: "a request", Width: 9, Decimals: 2},
		report.Column{Title: "packets", Unit: "an attempt", Width: 10, Decimals: 2},
		report.Column{Title: "reached", Unit: "of sent", Width: 19},
		report.Column{Title: "arrived", Unit: "of attempts", Width: 13},
		report.Column{Title: "retries", Unit: "user/front/middle", Width: 17},
		report.Column{Title: "good", Unit: "before/during %", Width: 15},
		report.Column{Title: "trouble", Unit: "s", Width: 7, Decimals: 2},
		report.Column{Title: "whole", Unit: "after s", Width: 8},
	)
	for _, one := range results {
		whole := fmt.Sprintf("%.2f", one.Return.Seconds())
		if !one.Returned {
			whole = "not"
		}
		reached, arrived := "", fmt.Sprintf("%d/%d", one.Arrived, one.Left)
		if one.Trouble == troubleKilled {
			reached, arrived = fmt.Sprintf("%d/%d..%d", one.Reached, one.Sent[0], one.Sent[1]), ""
		}
		err := r.Row(t, one, one.Trouble, one.Arm, one.Round, one.Users, one.Attempts, one.Deep, one.Most, one.Packets, one.Each, reached,
			arrived, fmt.Sprintf("%d/%d/%d", one.Retries[0], one.Retries[1], one.Retries[2]),
			fmt.Sprintf("%.1f/%.1f", 100*one.GoodBefore, 100*one.GoodDuring), one.Length.Seconds(), whole)
		if err != nil {
			return err
		}
	}
	return nil
}

func cancelTable(r *prove.Run, all []cancelled) error {
	r.Say("")
	t := report.NewTable(r.Out, false,
		report.Column{Title: "round", Width: 5},
		report.Column{Title: "calls", Unit: "cancelled", Width: 9},
		report.Column{Title: "handlers stopped", Unit: "front/middle/leaf", Width: 17},
		report.Column{Title: "last after", Unit: "ms, each", Width: 20},
	)
	for _, c := range all {
		err := r.Row(t, c, c.Round, c.Calls, fmt.Sprintf("%d/%d/%d", c.Stopped[0], c.Stopped[1], c.Stopped[2]),
			fmt.Sprintf("%.2f/%.2f/%.2f", 1e3*c.Last[0].Seconds(), 1e3*c.Last[1].Seconds(), 1e3*c.Last[2].Seconds()))
		if err != nil {
			return err
		}
	}
	return nil
}

// bounds judges each arm of each trouble.
func bounds(r *prove.Run, s settings, m measured) error {
	var errs []error
	for _, which := range runs() {
		var of []result
		for _, one := range m.results {
			if one.Trouble == which.trouble && one.Arm == which.arm {
				of = append(of, one)
			}
		}
		if len(of) > 0 {
			errs = append(errs, which.bounds(r, s, of))
		}
	}
	unstopped := 0.0
	for _, c := range m.cancelled {
		for i, n := range c.Stopped {
			unstopped += float64(c.Calls-n) + math.Abs(float64(c.Calls)-float64(c.Told[i]))
		}
	}
	return errors.Join(append(errs, r.AtMost("cancelled: handlers that were not told in any of three layers", unstopped, 0, ""))...)
}

func (w run) bounds(r *prove.Run, s settings, of []result) error {
	most, packets, whole, reached, arrived, allowed := 0.0, 0.0, time.Duration(0), math.Inf(1), math.Inf(1), math.Inf(1)
	var fans []float64
	for _, one := range of {
		most, fans = max(most, one.Attempts, one.Deep), append(fans, one.Deep)
		packets, allowed = max(packets, one.Packets), min(allowed, budgets(one.Whole, one.Length))
		reached = min(reached, within(one.Reached, one.Sent))
		arrived = min(arrived, within(one.Arrived, [2]uint64{one.Left, one.Left}))
		if !one.Returned {
			one.Return = max(one.Return, 2*wholeMax)
		}
		whole = max(whole, one.Return)
	}
	name := "leaf " + w.trouble + ", " + w.arm + ": "
	var errs []error
	switch w.arm {
	case armNone:
		fan := fanMin
		if w.trouble == troubleHangs {
			fan = fanHangs
		}
		errs = append(errs, r.AtLeast(name+"attempts a request", prove.SpreadOf(fans).Median, fan, ""))
	case armBudget:
		errs = append(errs, r.AtMost(name+"attempts a request", most, allowed, ""))
	default:
		errs = append(errs, r.AtMost(name+"attempts a request", most, attemptsMax, ""),
			r.AtMost(name+"from its return to goodput that stays whole", whole.Seconds(), wholeMax.Seconds(), "s"),
			r.AtMost(name+"packets a request", packets, attemptsMax*packetsMax(callMiddle*s.attempt), ""))
	}
	if w.trouble == troubleKilled {
		errs = append(errs, r.AtLeast(name+"packets that the dead leaf's kernel counted, of those sent", reached, reachedMin, ""))
	} else {
		errs = append(errs, r.AtLeast(name+"attempts that the leaf counted at its door, of those sent", arrived, reachedMin, ""))
	}
	return errors.Join(errs...)
}

// within is 1 if a count is between the two that it must be between, and less by its distance.
func within(n uint64, bounds [2]uint64) float64 {
	switch {
	case n < bounds[0]:
		return float64(n) / float64(bounds[0])
	case n > bounds[1]:
		return float64(bounds[1]) / float64(n)
	default:
		return 1
	}
}
