//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

type point struct {
	arm  string
	load float64
}

// book has all figures, goodput as shares of the capacity of its round.
type book struct {
	capacities []float64
	points     map[point][]figures
}

func (b *book) header(o *options, cpus []int) {
	for _, fact := range report.MachineFacts() {
		fmt.Printf("%s: %s\n", fact.Name, fact.Value)
	}
	fmt.Printf("client on CPU %d, server on CPU %d; %v of CPU a request, %d connections, seed %d, %d rounds of %v a point\n\n",
		cpus[0], cpus[len(cpus)-1], o.work, o.conns, o.seed, o.rounds, o.length)
}

// round measures the capacity, and then each point once; another arm begins each time.
func (b *book) round(o *options, arms []string, round, on int) error {
	c, err := o.capacity(round, on)
	if err != nil {
		return err
	}
	b.capacities = append(b.capacities, c)
	fmt.Printf("round %d: capacity %.0f/s\n", round+1, c)
	for _, load := range o.loads {
		for i := range arms {
			arm := arms[(i+round)%len(arms)]
			f, err := o.offer(arm, load, load*c, round, on)
			if err != nil {
				return fmt.Errorf("%s at %v: %w", arm, load, err)
			}
			for _, v := range []*float64{&f.Offered, &f.Answered, &f.Refused, &f.In[0], &f.In[1], &f.In[2]} {
				*v *= 100 / c
			}
			at := point{arm, load}
			b.points[at] = append(b.points[at], f)
		}
	}
	return nil
}

func (o *options) capacity(round, on int) (c float64, err error) {
	if o.virtual {
		f, err := virtual(o, "bare", 0, closedLoop, 0)
		return f.Answered, err
	}
	err = with(o, "bare", fmt.Sprintf("capacity-%d", round), on, func(address string) (err error) {
		c, err = capacity(address, o)
		return err
	})
	return c, err
}

func (o *options) offer(arm string, load, rate float64, round, on int) (f figures, err error) {
	seed := o.seed + uint64(round)
	if o.virtual {
		return virtual(o, arm, rate, 0, seed)
	}
	err = with(o, arm, fmt.Sprintf("%s-%v-%d", arm, load, round), on, func(address string) (err error) {
		f, err = openLoop(address, o, rate, seed)
		return err
	})
	return f, err
}

func with(o *options, arm, name string, on int, do func(address string) error) error {
	server, err := o.start(arm, name, on)
	if err != nil {
		return err
	}
	defer server.stop()
	return do(server.address)
}

// show prints the table.
func (b *book) show(o *options, arms []string) {
	fmt.Printf("\ncapacity %s/s; all shares in %% of it\n\n", spread(b.capacities, "%.0f"))
	fmt.Printf("%-18s %5s %8s %9s %8s %9s %9s  %-18s %9s %9s %9s\n",
		"arm", "load", "offered", "answered", "refused", "in 200 us", "in 1 ms", "in 2 ms", "p50", "p99", "client")
	for _, load := range o.loads {
		for _, arm := range arms {
			f := b.points[point{arm, load}]
			column := func(get func(figures) float64) []float64 {
				values := make([]float64, len(f))
				for i := range f {
					values[i] = get(f[i])
				}
				return values
			}
			wait := func(get func(figures) time.Duration) time.Duration {
				return time.Duration(median(column(func(f figures) float64 { return float64(get(f)) }))).Round(time.Microsecond)
			}
			fmt.Printf("%-18s %5.1f %8.1f %9.1f %8.1f %9.1f %9.1f  %-18s %9v %9v %9v\n", arm, load,
				median(column(func(f figures) float64 { return f.Offered })), median(column(func(f figures) float64 { return f.Answered })),
				median(column(func(f figures) float64 { return f.Refused })), median(column(func(f figures) float64 { return f.In[0] })),
				median(column(func(f figures) float64 { return f.In[1] })), spread(column(func(f figures) float64 { return f.In[2] }), "%.1f"),
				wait(func(f figures) time.Duration { return f.P50 }), wait(func(f figures) time.Duration { return f.P99 }),
				wait(func(f figures) time.Duration { return f.Late }))
		}
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// spread is the median, and from where to where.
func spread(values []float64, format string) string {
	if len(values) == 0 {
		return "-"
	}
	return fmt.Sprintf(format+" ("+format+"-"+format+")", median(values), slices.Min(values), slices.Max(values))
}
