package report

import "time"

// Sweep is an experiment over offered load: the same loads under several arms. Its methods are the charts that answer
// the questions one asks of an overload control.
type Sweep struct {
	Arms         []Arm
	CapacityPerS float64
	SLO          time.Duration
	TargetDelay  time.Duration // of the queue, what the control steers to; zero leaves its line out
}

// Arm is one scheme under test.
type Arm struct {
	Name   string
	Points []LoadPoint
}

// LoadPoint is what one arm did at one offered load. A value that an arm does not have is NaN.
type LoadPoint struct {
	OfferedPerS   float64
	GoodputPerS   float64
	RejectedPerS  float64
	ExpiredPerS   float64
	LatencyNsP99  float64
	LatencyNsP999 float64
	QueueDelayNs  float64
	CreditsPool   float64
	CreditsIssued float64
}

// series makes one curve per arm; the arm keeps its colour in every chart.
func (s Sweep) series(suffix string, dashed bool, y func(LoadPoint) float64) []Series {
	all := make([]Series, len(s.Arms))
	for i, arm := range s.Arms {
		all[i] = Series{Name: arm.Name + suffix, Color: i + 1, Dashed: dashed}
		for _, p := range arm.Points {
			all[i].Points = append(all[i].Points, Point{p.OfferedPerS, y(p)})
		}
	}
	return all
}

// drop leaves out curves without a finite value, as the credits of an arm that has none.
func drop(all []Series) []Series {
	var kept []Series
	for _, s := range all {
		for _, p := range s.Points {
			if finite(p.Y) {
				kept = append(kept, s)
				break
			}
		}
	}
	return kept
}

// chart fills in what all charts of the sweep share.
func (s Sweep) chart(c LineChart) LineChart {
	c.XLabel = "offered load, requests per second"
	c.XFormat = Count
	c.Series = drop(c.Series)
	return c
}

// maxOffered returns the largest load.
func (s Sweep) maxOffered() float64 {
	most := s.CapacityPerS
	for _, arm := range s.Arms {
		for _, p := range arm.Points {
			most = max(most, p.OfferedPerS)
		}
	}
	return most
}

// Goodput compares the arms with the ideal: all of the load up to the capacity, and the capacity from there on.
func (s Sweep) Goodput() LineChart {
	ideal := Series{Name: "ideal", Reference: true, Points: []Point{{0, 0}, {s.CapacityPerS, s.CapacityPerS}, {s.maxOffered(), s.CapacityPerS}}}
	return s.chart(LineChart{
		Title:   "Goodput: does it hold when more is asked than can be served?",
		Caption: "Answers within the SLO of " + Duration.Text(float64(s.SLO)) + ", counted from the instant the request was due. Higher is better.",
		YLabel:  "goodput, answers per second", YFormat: Count,
		Series: append([]Series{ideal}, s.series("", false, func(p LoadPoint) float64 { return p.GoodputPerS })...),
		HLines: []HLine{{s.CapacityPerS, "capacity " + Count.Text(s.CapacityPerS) + "/s"}},
	})
}

// Latency shows the tail of the answers.
func (s Sweep) Latency() LineChart {
	curves := s.series(" p99", false, func(p LoadPoint) float64 { return p.LatencyNsP99 })
	curves = append(curves, s.series(" p99.9", true, func(p LoadPoint) float64 { return p.LatencyNsP999 })...)
	return s.chart(LineChart{
		Title:   "Tail latency: how long do the slowest answers take?",
		Caption: "Of answered requests, from the instant they were due, wait at the client included. Logarithmic; lower is better.",
		YLabel:  "latency", YFormat: Duration, LogY: true,
		Series: curves,
		HLines: []HLine{{float64(s.SLO), "SLO " + Duration.Text(float64(s.SLO))}},
	})
}

// Refusals shows what was not served, and where it ended.
func (s Sweep) Refusals() LineChart {
	curves := s.series(", rejected by the server", false, func(p LoadPoint) float64 { return p.RejectedPerS })
	curves = append(curves, s.series(", expired at the client", true, func(p LoadPoint) float64 { return p.ExpiredPerS })...)
	return s.chart(LineChart{
		Title:   "Refusals: where does the load end that cannot be served?",
		Caption: "What expires at the client costs the server nothing; what the server rejects costs it a message each.",
		YLabel:  "requests per second", YFormat: Count,
		Series: curves,
	})
}

// QueueDelay shows the signal of the control against what it steers to.
func (s Sweep) QueueDelay() LineChart {
	c := LineChart{
		Title:   "Queue delay: does the control keep the server's queue at its target?",
		Caption: "The age of the oldest waiting request at the server. Logarithmic.",
		YLabel:  "queue delay", YFormat: Duration, LogY: true,
		Series: s.series("", false, func(p LoadPoint) float64 { return p.QueueDelayNs }),
	}
	if s.TargetDelay > 0 {
		c.HLines = []HLine{{float64(s.TargetDelay), "target " + Duration.Text(float64(s.TargetDelay))}}
	}
	return s.chart(c)
}

// Credits shows the pool and what of it was issued.
func (s Sweep) Credits() LineChart {
	curves := s.series(", pool", false, func(p LoadPoint) float64 { return p.CreditsPool })
	curves = append(curves, s.series(", issued", true, func(p LoadPoint) float64 { return p.CreditsIssued })...)
	return s.chart(LineChart{
		Title:   "Credits: how much work does the server allow at once?",
		Caption: "The pool is what the law wants to allow; issued is what clients hold or have under way.",
		YLabel:  "credits", YFormat: Count,
		Series: curves,
	})
}

// Timeline is the goodput share over time, one value per bucket.
type Timeline struct {
	Name        string
	BucketWidth time.Duration
	Shares      []float64 // of the offered requests, from 0 to 1
}

// StepChart shows how goodput follows a step of the load: overload lasts from the instant from to the instant to.
func StepChart(lines []Timeline, from, to time.Duration, label string) LineChart {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	c := LineChart{
		Title:   "A step of the load: how fast does goodput come back?",
		Caption: "The share of the requests due in each bucket that was answered within the SLO. Recovery counts from the end of the shaded time.",
		XLabel:  "time, ms", YLabel: "answered within the SLO", YFormat: Percent,
		YMax:   1.05,
		Spans:  []Span{{ms(from), ms(to), label}},
		HLines: []HLine{{0.95, "95 %"}},
	}
	for i, l := range lines {
		s := Series{Name: l.Name, Color: i + 1}
		for j, share := range l.Shares {
			s.Points = append(s.Points, Point{ms(l.BucketWidth) * (float64(j) + 0.5), share})
		}
		c.Series = append(c.Series, s)
	}
	return c
}
