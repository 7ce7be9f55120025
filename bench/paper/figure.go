package paper

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/paper/published"
	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// figure is what the data and its notes say of one figure's set-up.
type figure struct {
	name       string
	experiment string
	title      string
	// others are the schemes that are drawn beside the published ones; variants what of Breakwater's law is drawn of each.
	others   []Scheme
	variants []Parts
}

// The experiments that the figures belong to.
const (
	loadCurves = "E12"
	spike      = "E6"
	parameters = "E21"
)

// figures lists the figures in the order of the paper.
var figures = []figure{
	{"F1", loadCurves, "Motivation: CoDel and a window per client", Schemes(), []Parts{whole}},
	{"F3", loadCurves, "Load curves", Schemes(), []Parts{whole}},
	{"F4", loadCurves, "Service time distributions", Schemes(), []Parts{whole}},
	{"F5", loadCurves, "Service times of 1, 10 and 100 µs", Schemes(), []Parts{whole}},
	{"F6", loadCurves, "Number of clients", Schemes(), []Parts{whole}},
	{"F7", spike, "A spike of the demand", Schemes(), []Parts{whole}},
	{"F8", loadCurves, "Demand speculated, and demand asked for", creditSchemes, []Parts{whole, {Credits: true, AQM: true}}},
	{"F9", loadCurves, "Ablation: credits, speculation, AQM", creditSchemes,
		[]Parts{{Credits: true}, {Credits: true, Speculation: true}, whole, {AQM: true}}},
	{"S7", loadCurves, "No control: the median (talk, slide 7)", nil, nil},
	{"F10", parameters, "Aggressiveness: alpha and beta", creditSchemes, []Parts{whole}},
	{"F11", parameters, "27 settings of each scheme", creditSchemes, []Parts{whole}},
	{"F12", loadCurves, "Memcached", Schemes(), []Parts{whole}},
}

var creditSchemes = []Scheme{Stillwater, BreakwaterArtifact, BreakwaterPaper}

// Figures returns the names of the figures in order.
func Figures() []string {
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	return names
}

// The set-up of all figures, if not said otherwise.
const (
	clientsUsual     = 1000
	workersUsual     = 10
	roundTrip        = 10 * time.Microsecond
	sloFactor        = 10 // times mean service plus round trip
	memcachedSLO     = 50 * time.Microsecond
	memcachedClients = 10_000
	// memcachedService reproduces memcached's capacity of 2.5 M/s on ten workers with the cost of 1.76 us a request that explains the
	// synthetic capacities. USR is nearly all GETs of tiny values, so it is constant; 12 us of median at low load say the same.
	memcachedService = 2240 * time.Nanosecond
)

// nominal resolves what a panel or an axis calls by a multiple of the capacity, which is not one number in the paper.
var nominal = map[string]float64{
	"F1 b":      2.0e6,
	"F4 a-0.9x": 0.8e6, "F4 b-1.2x": 1.0e6, "F4 c-2x": 1.6e6,
	"F6 a-1x": 0.8e6, "F6 b-2x": 1.6e6,
	"F10 -":      1.6e6,                    // its first point is F3's run at 1.6 M/s to four digits in both metrics, whatever the text says
	"F11 27sets": 1.0e6, "F11 best": 1.0e6, // all three tuned points are F3's at 1.0 M/s
}

// spikeDemand is F7's, stage by stage.
var spikeDemand = []float64{400e3, 800e3, 1200e3, 800e3, 400e3}

// services of F5, by panel; other figures have 10 us.
var services = map[string]time.Duration{"F5 a-1us": time.Microsecond, "F5 c-100us": 100 * time.Microsecond}

// setUp returns the point that a place of a figure is read from, for no scheme yet.
func (f figure) setUp(panel string, name published.XName, text string, x float64, size Size) (Point, error) {
	place := f.name + " " + panel
	p := Point{
		Experiment: f.experiment, Figure: f.name, Panel: panel,
		Clients: clientsUsual, RTT: roundTrip, Workers: workersUsual, Warmup: size.Warmup,
		Service: workload.ServiceTime{Shape: workload.Exponential, Mean: 10 * time.Microsecond},
	}
	if mean, found := services[place]; found {
		p.Service.Mean = mean
	}
	demand := nominal[place]
	switch name {
	case published.DemandMrps, published.DemandKrps:
		demand = x
	case published.Clients:
		p.Clients = int(x)
	case published.ServiceShape:
		if err := p.Service.Set(text + ":10us"); err != nil {
			return Point{}, fmt.Errorf("%s: %w", place, err)
		}
	}
	p.SLO = sloFactor * (p.Service.Mean + p.RTT)
	if f.name == "F12" {
		p.Clients, p.SLO = memcachedClients, memcachedSLO
		p.Service = workload.ServiceTime{Shape: workload.Constant, Mean: memcachedService}
	}
	if name == published.TimeS {
		p.Window, p.Measured = windowWidth, size.Stage*time.Duration(len(spikeDemand))
		for i, demand := range spikeDemand {
			p.Load = append(p.Load, Step{time.Duration(i) * size.Stage, demand})
		}
		return p, nil
	}
	if demand <= 0 {
		return Point{}, fmt.Errorf("%s: no demand is known for x = %q", place, text)
	}
	p.Load = []Step{{0, demand}}
	p.Measured = time.Duration(float64(size.Requests) / demand * 1e9)
	return p, nil
}

// baseX returns a row's X in the base unit.
func baseX(r published.Row) float64 {
	switch r.XName {
	case published.DemandMrps:
		if r.Scheme == "no control" {
			return math.Round(uncontrolledDemand(r.XValue) * 1e6)
		}
		return math.Round(r.XValue*1e6/1e3) * 1e3
	case published.DemandKrps, published.ThroughputKrps:
		return r.XValue * 1e3
	}
	return r.XValue
}

// oddDemands are where the runs without control sit above 0.8 M/s. F9 a, F9 b and the slide draw the same runs, and read a little apart.
var oddDemands = []float64{0.8515, 0.9543, 0.9862, 1.0429, 1.2263, 1.3884}

// uncontrolledDemand returns the demand in M/s of a run without control: on the grid up to 0.8, one of the odd ones above.
func uncontrolledDemand(x float64) float64 {
	const apart = 0.002
	if grid := math.Round(x*10) / 10; grid < 0.81 && math.Abs(x-grid) < apart {
		return grid
	}
	for _, odd := range oddDemands {
		if math.Abs(x-odd) < apart {
			return odd
		}
	}
	return x
}

// legend translates the names in the figures' legends.
func legend(name string) (Scheme, Parts, bool) {
	switch name {
	case "Breakwater", "spec", "spec-RX", "spec-TX", "credit+spec+AQM":
		return BreakwaterArtifact, whole, true
	case "sync", "sync-RX", "sync-TX":
		return BreakwaterArtifact, Parts{Credits: true, AQM: true}, true
	case "credit":
		return BreakwaterArtifact, Parts{Credits: true}, true
	case "credit+spec":
		return BreakwaterArtifact, Parts{Credits: true, Speculation: true}, true
	case "DAGOR":
		return DAGOR, Parts{}, true
	case "SEDA":
		return SEDA, Parts{}, true
	case "no control":
		return None, Parts{}, true
	case "CoDel":
		return CoDel, Parts{}, true
	case "win-based RL":
		return Window, Parts{}, true
	}
	return "", Parts{}, false
}

// windowEnd finds the window of a run that stands for a published time of F7. Stages may be shorter than published: then each
// is compared as far as it goes.
func windowEnd(seconds float64, size Size) (time.Duration, bool) {
	k := int(math.Round(seconds / windowWidth.Seconds())) // windows end at 0.02 k
	perStage := int(stagePublished / windowWidth)
	stage, within := (k-1)/perStage, (k-1)%perStage+1
	end := time.Duration(within) * windowWidth
	return time.Duration(stage)*size.Stage + end, end <= size.Stage
}

// findFigure returns a figure by name.
func findFigure(name string) (figure, error) {
	i := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
	if i < 0 {
		return figure{}, fmt.Errorf("%w: figure %q: write some of %v", ErrOptions, name, Figures())
	}
	return figures[i], nil
}

// rate writes a rate for names, as 1.6M.
func rate(perS float64) string {
	if perS >= 1e6 {
		return strconv.FormatFloat(perS/1e6, 'f', -1, 64) + "M"
	}
	return strconv.FormatFloat(perS/1e3, 'f', -1, 64) + "k"
}
