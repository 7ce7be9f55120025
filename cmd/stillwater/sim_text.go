package main

import (
	"fmt"
	"io"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/simulate"
)

// simPoint is one run.
type simPoint struct {
	Scheme             string                  `json:"scheme"`
	Load               float64                 `json:"load,omitempty"` // times the capacity
	Seed               uint64                  `json:"seed"`
	CapacityPerS       float64                 `json:"capacity_per_s"`
	OfferedPerS        float64                 `json:"offered_per_s"`
	GoodputPerS        float64                 `json:"goodput_per_s"`
	ThroughputPerS     float64                 `json:"throughput_per_s"`
	SLONs              int64                   `json:"slo_ns"`
	LatencyNsP50       float64                 `json:"latency_ns_p50"`
	LatencyNsP99       float64                 `json:"latency_ns_p99"`
	RejectLatencyNsP99 float64                 `json:"reject_latency_ns_p99"`
	DropRatio          float64                 `json:"drop_ratio"`
	DropRatioClient    float64                 `json:"drop_ratio_client"`
	Outcomes           map[string]uint64       `json:"outcome_counts"`
	Windows            []simulate.WindowResult `json:"windows,omitempty"`
	Violations         []string                `json:"violations,omitempty"`

	attainable float64 // goodput of a perfect control
}

// point is the result of the run of that number.
func (s *simulation) point(i int, r *simulate.Result) simPoint {
	p := simPoint{
		Scheme: r.Scenario.Scheme, Seed: r.Scenario.Seed, CapacityPerS: r.CapacityPerS, OfferedPerS: r.OfferedPerS, GoodputPerS: r.GoodputPerS,
		ThroughputPerS: r.ThroughputPerS, SLONs: int64(r.Scenario.SLO), LatencyNsP50: r.LatencyP50, LatencyNsP99: r.LatencyP99,
		RejectLatencyNsP99: r.RejectP99, DropRatio: r.DropRatio, DropRatioClient: r.DropRatioClient, Outcomes: r.Outcomes,
		Windows: r.Windows, Violations: r.Violations,
	}
	if len(s.Loads) > 0 {
		p.Load = s.Loads[i/max(len(s.Schemes), 1)]
	}
	p.attainable = min(p.CapacityPerS, p.OfferedPerS)
	if len(s.Loads) == 0 {
		p.attainable = s.attainable(p.CapacityPerS)
	}
	return p
}

// attainable is what a perfect control would have of a demand over time.
func (s *simulation) attainable(capacity float64) (mean float64) {
	for i, step := range s.Demand {
		end := s.Measure
		if i+1 < len(s.Demand) {
			end = s.Demand[i+1].At
		}
		mean += min(step.PerS, capacity) * float64(end-step.At) / float64(s.Measure)
	}
	return mean
}

// share is the goodput, of what a perfect control would have had.
func (p simPoint) share() float64 { return p.GoodputPerS / max(p.attainable, 1) }

// goodShare is what a server at or beyond its capacity is to keep of it; below is bad news.
const goodShare = 0.9

// orDash leaves out what does not exist.
func orDash(v float64) any {
	if v == 0 {
		return nil
	}
	return v
}

// text returns what prints the runs for a person.
func (s *simulation) text(out io.Writer, colours bool) func(simPoint) error {
	const us = 1e3
	load := report.Column{Title: "load", Unit: "x cap.", Width: 6, Decimals: 2}
	if len(s.Loads) == 0 {
		load = report.Column{Title: "from", Width: 6}
	}
	table := report.NewTable(out, colours,
		report.Column{Title: "scheme", Width: 19, Left: true}, load,
		report.Column{Title: "offered", Unit: "k/s", Width: 7, Decimals: 1, Divide: 1e3},
		report.Column{Title: "goodput", Unit: "k/s", Width: 7, Decimals: 1, Divide: 1e3},
		report.Column{Title: "of cap.", Unit: "%", Width: 7, Decimals: 1},
		report.Column{Title: "p50", Unit: "us", Width: 7, Decimals: 0, Divide: us},
		report.Column{Title: "p99", Unit: "us", Width: 8, Decimals: 0, Divide: us},
		report.Column{Title: "dropped", Unit: "% server", Width: 8, Decimals: 2},
		report.Column{Title: "unsent", Unit: "% client", Width: 8, Decimals: 1},
		report.Column{Title: "reject", Unit: "p99 us", Width: 8, Decimals: 0, Divide: us},
	)
	first := true
	return func(p simPoint) error {
		if first {
			first = false
			if err := table.Line(s.headline(p)); err != nil {
				return err
			}
		}
		var at any = p.Load
		if len(s.Loads) == 0 {
			at = "all"
		}
		err := table.Row(p.Scheme, at, p.OfferedPerS, tone(p.GoodputPerS, p.share() >= goodShare), 100*p.GoodputPerS/p.CapacityPerS,
			orDash(p.LatencyNsP50), tone(orDash(p.LatencyNsP99), p.LatencyNsP99 <= float64(p.SLONs)), 100*p.DropRatio, 100*p.DropRatioClient,
			orDash(p.RejectLatencyNsP99))
		for _, g := range s.stages(p) {
			if err == nil {
				err = table.Row("", time.Duration(g.from).String(), g.demand, tone(g.goodput, g.goodput >= goodShare*min(g.demand, p.CapacityPerS)),
					100*g.goodput/p.CapacityPerS, "", tone(orDash(g.worst), g.worst <= float64(p.SLONs)))
			}
		}
		return err
	}
}

func tone(v any, good bool) report.Cell {
	if good {
		return report.Cell{Value: v, Tone: report.Good}
	}
	return report.Cell{Value: v, Tone: report.Bad}
}

// headline says what is simulated.
func (s *simulation) headline(p simPoint) string {
	return fmt.Sprintf("%s\ncapacity %.0f/s, SLO %v, seed %d\n", s.setup(), p.CapacityPerS, time.Duration(p.SLONs), p.Seed)
}

// setup is the server, its clients and its network in words.
func (s *simulation) setup() string {
	d := s.Complete()
	work := d.Service.String()
	if n := len(d.Samples); n > 0 {
		work = fmt.Sprintf("%d samples of %v in the mean", n, d.Service.Mean)
	}
	return fmt.Sprintf("%d workers, service %s; %d clients, round trip %v", d.Server.CPUs, work, d.Clients, time.Duration(d.Network.RTT))
}

// stage is the time from one step of the demand to the next.
type stage struct {
	from                   simulate.Duration
	demand, goodput, worst float64 // the worst p99 of a window
}

// stages are what a run did in each stage of the demand, for who has no picture of it; none for a constant demand.
func (s *simulation) stages(p simPoint) (all []stage) {
	if len(s.Demand) < 2 || len(p.Windows) == 0 {
		return nil
	}
	for i, step := range s.Demand {
		g := stage{from: step.At, demand: step.PerS}
		count := 0
		for _, w := range p.Windows {
			if w.End <= step.At || i+1 < len(s.Demand) && w.End > s.Demand[i+1].At {
				continue
			}
			count++
			g.goodput += w.GoodputPerS
			g.worst = max(g.worst, w.LatencyP99)
		}
		g.goodput /= max(float64(count), 1)
		all = append(all, g)
	}
	return all
}
