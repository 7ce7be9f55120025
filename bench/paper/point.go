package paper

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// Point is one run: one scheme under one load.
type Point struct {
	Experiment string // E6, E12 or E21 of the list of experiments
	Figure     string // where it is drawn first; others may read it too
	Panel      string
	Scheme     Scheme
	Parts      Parts // zero for schemes without credits
	Tuning     Tuning

	Clients int // open-loop, Poisson, of equal rates
	Load    []Step
	Service workload.ServiceTime
	SLO     time.Duration
	RTT     time.Duration // of the network alone
	Workers int           // of the server: the paper's 10 hyper-threads

	Warmup   time.Duration // under the first load, not counted on either side
	Measured time.Duration // after it
	// Window asks for Result.Series in windows of this length from the end of the warm-up on; 0 for none.
	Window time.Duration
}

// Step is a demand from some time on.
type Step struct {
	At         time.Duration // after the warm-up; the first is 0 and holds in the warm-up too
	DemandPerS float64       // of all clients together
}

// DemandPerS returns the highest demand of the point.
func (p Point) DemandPerS() (most float64) {
	for _, s := range p.Load {
		most = max(most, s.DemandPerS)
	}
	return most
}

// Requests is about how many requests arise in the measured time.
func (p Point) Requests() float64 {
	var n float64
	for i, s := range p.Load {
		end := p.Measured
		if i+1 < len(p.Load) {
			end = p.Load[i+1].At
		}
		n += s.DemandPerS * (end - s.At).Seconds()
	}
	return n
}

// Name says in a few words what runs.
func (p Point) Name() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s, %d clients, %v", p.Figure, p.Panel, p.Scheme, p.Clients, p.Service)
	for _, s := range p.Load {
		fmt.Fprintf(&b, ", %s/s", rate(s.DemandPerS))
	}
	if p.Parts != (Parts{}) && p.Parts != whole {
		fmt.Fprintf(&b, ", %v", p.Parts)
	}
	return b.String()
}

// key tells runs apart, and not where they are drawn.
func (p Point) key() string {
	p.Experiment, p.Figure, p.Panel = "", "", ""
	return fmt.Sprintf("%+v", p)
}

// seed mixes the seed of all runs with the point's load, and not with its scheme: at one load all schemes see the same arrivals, counted from the
// beginning of the warm-up, so what differs between them is theirs.
func (p Point) seed(of uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %v %v %d", of, p.Clients, p.Load, p.Service, p.Workers)
	return h.Sum64()
}
