//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/target"
)

// The bounds, at boundAt outstanding and for our ports as they are used (packed), as ratios within one round.
const (
	boundAt       = 16
	xdpOverUDPMin = 2.0
	udpOverRawMin = 0.8
)

const payloadBytes = 64

var outstanding = []int{1, 4, 16, 64}

// variant is one thing to compare.
type variant struct {
	name string
	raw  bool
	child.Transport
}

// The variants by their place in variants.
const (
	xdp = iota
	udp
	raw
	xdpPacked
	udpPacked
	variantCount
)

var variants = [variantCount]variant{
	xdp:       {name: "AF_XDP, one message a packet", Transport: child.Transport{NoPacking: true}},
	udp:       {name: "kernel UDP, one message a packet", Transport: child.Transport{UDP: true, NoPacking: true}},
	raw:       {name: "raw spinning UDP echo", raw: true},
	xdpPacked: {name: "AF_XDP, packed"},
	udpPacked: {name: "kernel UDP, packed", Transport: child.Transport{UDP: true}},
}

// settings are the flags.
type settings struct {
	window, warmup time.Duration
}

// figures are all rounds of one variant at one number outstanding.
type figures struct {
	perS, p50, p99 []float64
	lost           uint64 // echoes that did not come: lost datagrams, and calls that ended otherwise
}

// experiment holds figures by variant and by place in outstanding.
type experiment struct {
	settings
	seed uint64
	got  [variantCount][]figures
}

func main() {
	var s settings
	prove.Command{
		Name: "ports", Rounds: 7,
		About: "Compares AF_XDP, kernel UDP and a raw spinning UDP echo by closed-loop 64-byte echoes.",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&s.window, "window", 300*time.Millisecond, "measured time of each figure")
			f.DurationVar(&s.warmup, "warmup", 100*time.Millisecond, "load before it")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			e, err := measure(ctx, r, s)
			if err != nil {
				return err
			}
			return e.show(r)
		},
	}.Main()
}

// measure runs all variants in each round, and lets another one be first each time.
func measure(ctx context.Context, r *prove.Run, s settings) (*experiment, error) {
	e := &experiment{settings: s, seed: r.Seed}
	for v := range e.got {
		e.got[v] = make([]figures, len(outstanding))
	}
	return e, r.WithPair(ctx, func(p *child.Pair) error {
		for round := range r.Rounds {
			for i := range variants {
				v := (i + round) % variantCount
				if err := e.one(ctx, p, v); err != nil {
					return fmt.Errorf("%s: %w", variants[v].name, err)
				}
			}
			r.Advance()
		}
		return nil
	})
}

// one measures one variant at all numbers outstanding.
func (e *experiment) one(ctx context.Context, p *child.Pair, v int) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	if variants[v].raw {
		return e.bare(ctx, p, e.got[v])
	}
	if _, err := p.ServeAndDial(ctx, child.ServeRequest{Transport: variants[v].Transport}, 1); err != nil {
		return err
	}
	for i, n := range outstanding {
		plan := load.Plan{PayloadBytes: payloadBytes, Warmup: e.warmup, Duration: e.window, Seed: e.seed}
		result, err := prove.Closed(ctx, p, target.MethodEcho, n, plan)
		if err != nil {
			return err
		}
		c := result.Counts
		e.got[v][i].add(result.ThroughputPerS, result.LatencyNsP50, result.LatencyNsP99, c.Issued-c.OK)
	}
	return nil
}

func (e *experiment) bare(ctx context.Context, p *child.Pair, to []figures) error {
	address, err := p.ServeRaw(ctx)
	if err != nil {
		return err
	}
	for i, n := range outstanding {
		result, err := p.Raw(ctx, child.RawRequest{
			Address: address, Outstanding: n, PayloadBytes: payloadBytes, Warmup: e.warmup, Duration: e.window,
		})
		if err != nil {
			return err
		}
		to[i].add(result.PerSecond, result.NsP50, result.NsP99, uint64(result.Lost))
	}
	return nil
}

func (f *figures) add(perS float64, p50, p99 int64, lost uint64) {
	f.perS, f.p50, f.p99 = append(f.perS, perS), append(f.p50, float64(p50)), append(f.p99, float64(p99))
	f.lost += lost
}

// ratio is the spread of the ratios of two variants, round by round.
func (e *experiment) ratio(over, under, at int) prove.Spread {
	var ratios []float64
	for round, perS := range e.got[over][at].perS {
		ratios = append(ratios, perS/e.got[under][at].perS[round])
	}
	return prove.SpreadOf(ratios)
}

// row is one line of the results.
type row struct {
	Kind        string       `json:"kind"`
	Port        string       `json:"port"`
	Outstanding int          `json:"outstanding"`
	PerS        prove.Spread `json:"per_s"`
	NsP50       prove.Spread `json:"latency_ns_p50"`
	NsP99       prove.Spread `json:"latency_ns_p99"`
	OverRaw     prove.Spread `json:"times_raw"`
	Lost        uint64       `json:"lost_count"`
}

func (e *experiment) show(r *prove.Run) error {
	if err := e.table(r); err != nil {
		return err
	}
	for i, n := range outstanding {
		if n != boundAt {
			continue
		}
		gain, share := e.ratio(xdpPacked, udpPacked, i), e.ratio(udpPacked, raw, i)
		return errors.Join(
			r.AtLeast(fmt.Sprintf("AF_XDP over our kernel UDP port at %d outstanding", n), gain.Median, xdpOverUDPMin, "times"),
			r.AtLeast(fmt.Sprintf("our kernel UDP port over a raw spinning echo at %d outstanding", n), share.Median, udpOverRawMin, "times"),
		)
	}
	return nil
}

func (e *experiment) table(r *prove.Run) error {
	table := report.NewTable(r.Out, false,
		report.Column{Title: "port", Width: 32, Left: true},
		report.Column{Title: "outstanding", Width: 11},
		report.Column{Title: "echoes", Unit: "k/s", Width: 22},
		report.Column{Title: "of raw UDP", Unit: "times", Width: 18},
		report.Column{Title: "p50", Unit: "us", Width: 20},
		report.Column{Title: "p99", Unit: "us", Width: 22},
		report.Column{Title: "lost", Unit: "all rounds", Width: 10},
	)
	for i, n := range outstanding {
		for v := range variants {
			f := &e.got[v][i]
			line := row{
				"port", variants[v].name, n, prove.SpreadOf(f.perS), prove.SpreadOf(f.p50), prove.SpreadOf(f.p99),
				e.ratio(v, raw, i), f.lost,
			}
			err := r.Row(table, line, line.Port, n, line.PerS.Text(1e3, 0), line.OverRaw.Text(1, 2), line.NsP50.Text(1e3, 1),
				line.NsP99.Text(1e3, 0), line.Lost)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
