package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// Duration is a time in a scenario's file: "10us".
type Duration time.Duration

// MarshalText writes it as the command line does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// Scenario is one experiment. The zero value of each field means the set-up of the paper, or none of it.
type Scenario struct {
	Name   string `json:"name,omitempty"`
	Seed   uint64 `json:"seed"`
	Scheme string `json:"scheme,omitempty"` // of credit/baseline; "" = stillwater
	Law    Law    `json:"law,omitzero"`

	Server  Server  `json:"server,omitzero"`
	Network Network `json:"network,omitzero"`

	Clients int `json:"clients,omitempty"` // 0 = 1000
	Crowd
	Hosts int `json:"hosts,omitempty"` // that the clients are spread over; 0 = 10, or as many as there are clients

	Service workload.ServiceTime `json:"service"`
	Samples []Duration           `json:"samples,omitempty"` // service times to draw from; Service is then the nearest known distribution
	Mix     []Part               `json:"mix,omitempty"`     // kinds of calls; Service is then the nearest known distribution
	Demand  []Step               `json:"demand,omitempty"`  // of all clients together
	SLO     Duration             `json:"slo,omitempty"`     // 0 = 10 (mean service + RTT)
	Budget  Duration             `json:"budget,omitempty"`  // deadline of each call; 0 = the SLO, where the scheme makes use of deadlines; below zero = none
	Warmup  Duration             `json:"warmup"`            // under the first demand, not counted
	Measure Duration             `json:"measure"`           // after it
	Drain   Duration             `json:"drain,omitempty"`   // after that, without any demand: calls still end, and are counted
	Window  Duration             `json:"window,omitempty"`  // of Result.Windows; 0 = none

	Begun func() `json:"-"` // called when the warm-up is over, for who measures the machine that plays; nil = nobody
}

// Law changes settings of a scheme. Zero values leave them as they are, and so do those of other schemes.
type Law struct {
	Alpha         float64  `json:"alpha,omitempty"`
	Beta          float64  `json:"beta,omitempty"`
	Target        Duration `json:"target,omitempty"`
	DropThreshold Duration `json:"drop_threshold,omitempty"`
	NoCredits     bool     `json:"no_credits,omitempty"`     // all slots for everybody, behind the scheme's door
	NoAQM         bool     `json:"no_aqm,omitempty"`         // the door is never shut
	NoSpeculation bool     `json:"no_speculation,omitempty"` // credits for known demand alone, which clients tell in messages of their own
	Quiet         bool     `json:"quiet,omitempty"`          // of breakwater-artifact: clients without a credit say nothing unasked
	DAGOR         DAGOR    `json:"dagor,omitzero"`
	SEDA          SEDA     `json:"seda,omitzero"`
}

// Server describes the machine that serves.
type Server struct {
	CPUs      int    `json:"cpus,omitempty"`    // 0 = 10
	Poller    bool   `json:"poller,omitempty"`  // a further CPU handles the packets; else whichever is free
	Steered   bool   `json:"steered,omitempty"` // each CPU has a ring of its own, by the host that packets come from
	Costs     *Costs `json:"costs,omitempty"`   // nil = PaperCosts
	Ring      int    `json:"ring,omitempty"`    // packets that may wait; 0 = 4096
	Threads   bool   `json:"threads,omitempty"` // packets, handlers and answers take turns, as in the paper's runtime
	Pause     Pause  `json:"pause,omitzero"`    // each CPU is away for a while, again and again
	InService int    `json:"in_service,omitempty"`
	// FixedWorkers has no other bound on the requests in service: see runtime.ServerConfig.
	FixedWorkers bool `json:"fixed_workers,omitempty"`
	// Signal is what the credit law is told instead of the age of what waits: "load", "length", or "" for the age. See signal.go.
	Signal string `json:"signal,omitempty"`
	// Wait is part of each handler.
	Wait *Wait `json:"wait,omitempty"`
}

// Costs are what a message costs the CPU that handles it.
type Costs struct {
	Receive Duration `json:"receive"`
	Send    Duration `json:"send"`
	Reject  Duration `json:"reject"`
	Credit  Duration `json:"credit"`
}

// Wait has part of the handlers wait for something else than a CPU.
type Wait struct {
	For   Duration `json:"for"`
	Share float64  `json:"share"` // of the requests
	Lock  bool     `json:"lock"`  // a lock that is held for so long, on a CPU; else a device
	Depth int      `json:"depth"` // of the device: how many it serves at once
	// Gate has a gate in front of the lock, as package middleware makes them for the scenario's SLO: who would be too late is refused at once.
	Gate bool `json:"gate,omitempty"`
}

// Network is the fabric.
type Network struct {
	RTT       Duration `json:"rtt,omitempty"` // 0 = 10 us
	Jitter    Duration `json:"jitter,omitempty"`
	Loss      float64  `json:"loss,omitempty"` // and the others: probabilities of each packet
	Duplicate float64  `json:"duplicate,omitempty"`
	Reorder   float64  `json:"reorder,omitempty"`
	Corrupt   float64  `json:"corrupt,omitempty"`
}

// Step is a demand from some time on.
type Step struct {
	At   Duration `json:"at,omitempty"` // after the warm-up; the first holds in the warm-up too
	PerS float64  `json:"per_s"`
}

// PaperCosts reproduce the capacities that the paper states for its machine, 850,000, 3.6 million and 98,000 requests/s with 10, 1 and 100 us of
// service on ten hyper-threads, by one overhead of 1.76 us a request. It is split half and half between receiving and sending. A refusal is a short
// packet and no handler: half of a reply; so is a credit update.
var PaperCosts = Costs{Receive: Duration(880), Send: Duration(880), Reject: Duration(440), Credit: Duration(440)}

// The paper's set-up.
const (
	cpusUsual    = 10
	clientsUsual = 1000
	hostsUsual   = 10
	rttUsual     = Duration(10 * time.Microsecond)
	sloFactor    = 10
)

// ErrScenario says that a scenario cannot be played.
var ErrScenario = errors.New("bad scenario")

// Read reads a scenario's file. A field that it does not know is an error: it would change nothing, silently.
func Read(r io.Reader) (Scenario, error) {
	var s Scenario
	if err := decode(r, &s); err != nil {
		return Scenario{}, err
	}
	return s, s.Validate()
}

// Text is the scenario's file.
func (s Scenario) Text() ([]byte, error) { return encode(s) }

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// Complete is the scenario with the defaults put in.
func (s Scenario) Complete() Scenario { return s.withDefaults() }

// withDefaults puts the paper's set-up in where nothing is said.
func (s Scenario) withDefaults() Scenario {
	switch {
	case len(s.Samples) > 0:
		s.Service = samples(s.Samples).nearest()
	case len(s.Mix) > 0:
		s.Service = mix(s.Mix).nearest()
	}
	def(&s.Scheme, baseline.Stillwater)
	def(&s.Server.CPUs, cpusUsual)
	def(&s.Clients, clientsUsual)
	def(&s.Hosts, min(hostsUsual, s.Clients))
	def(&s.Network.RTT, rttUsual)
	def(&s.SLO, sloFactor*(Duration(s.Service.Mean)+s.Network.RTT))
	if s.Server.Costs == nil {
		s.Server.Costs = &PaperCosts
	}
	return s
}

// def replaces an unset value.
func def[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Validate says what is wrong with a scenario, if anything.
func (s Scenario) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrScenario}, args...)...)
	}
	d := s.withDefaults()
	for name, v := range map[string]Duration{
		"slo": d.SLO, "warmup": d.Warmup, "measure": d.Measure, "window": d.Window, "rtt": d.Network.RTT, "jitter": d.Network.Jitter,
		"pause every": d.Server.Pause.Every, "pause for": d.Server.Pause.For,
	} {
		if v < 0 {
			return fail("%s %v: it cannot be negative", name, time.Duration(v))
		}
	}
	for name, v := range map[string]float64{
		"loss": d.Network.Loss, "duplicate": d.Network.Duplicate, "reorder": d.Network.Reorder, "corrupt": d.Network.Corrupt,
	} {
		if !(v >= 0 && v <= 1) {
			return fail("%s %v: a probability is between 0 and 1", name, v)
		}
	}
	switch {
	case d.Clients < 1 || d.Hosts < 1 || d.Hosts > d.Clients || d.Clients > clientsMax:
		return fail("%d clients on %d hosts: at least one on each, and at most %d", d.Clients, d.Hosts, clientsMax)
	case d.Server.CPUs < 1 || d.Server.CPUs > cpusMax:
		return fail("%d CPUs: from 1 to %d", d.Server.CPUs, cpusMax)
	case d.Server.Ring < 0 || d.Server.InService < 0:
		return fail("ring %d, %d in service: neither can be negative", d.Server.Ring, d.Server.InService)
	case d.Server.Pause.For > 0 && d.Server.Pause.For >= d.Server.Pause.Every:
		return fail("a pause of %v every %v: shorter than the time from one to the next", time.Duration(d.Server.Pause.For), time.Duration(d.Server.Pause.Every))
	case slices.ContainsFunc(d.Samples, func(v Duration) bool { return v < 0 || time.Duration(v) > workload.MaxWork }):
		return fail("samples: a service time is from 0 to %v", workload.MaxWork)
	case d.Idle < 0 || d.Dial < 0 || d.Greet < 0 || d.Together < 0 || d.Burst < 0 || d.Clients+d.Idle+d.Dial > clientsMax:
		return fail("crowd %+v of %d clients: from 0 to %d", d.Crowd, d.Clients, clientsMax)
	case len(d.Mix) > 0 && (len(d.Samples) > 0 || !mix(d.Mix).valid()):
		return fail("mix %+v: shares above 0, methods from 0 to %d, and no samples beside it", d.Mix, methodMax)
	case d.Drain < 0:
		return fail("drain %v: it cannot be negative", time.Duration(d.Drain))
	case !slices.Contains(signals, d.Server.Signal):
		return fail("signal %q: one of %q", d.Server.Signal, signals)
	case d.Server.Signal != SignalAge && d.Scheme != baseline.Stillwater && d.Scheme != baseline.BreakwaterPaper:
		return fail("signal %q: for %s and %s, not for %s", d.Server.Signal, baseline.Stillwater, baseline.BreakwaterPaper, d.Scheme)
	case d.Measure == 0:
		return fail("nothing is measured: set measure")
	case len(d.Demand) == 0 || d.Demand[0].At != 0:
		return fail("demand must begin at 0")
	}
	for i, step := range d.Demand {
		if !(step.PerS >= 0) || step.PerS > demandMax || i > 0 && step.At <= d.Demand[i-1].At {
			return fail("demand %d: %v/s at %v: from 0 to %g/s, each later than the one before", i, step.PerS, time.Duration(step.At), float64(demandMax))
		}
	}
	if w := d.Server.Wait; w != nil && (w.For < 0 || !(w.Share >= 0 && w.Share <= 1) || !w.Lock && w.Depth < 1) {
		return fail("wait %+v: a time, a share between 0 and 1, and a lock or a device at least 1 deep", *w)
	}
	if w := d.Server.Wait; w != nil && w.Gate && !w.Lock {
		return fail("a gate is in front of a lock, and there is none")
	}
	_, err := d.scheme()
	return err
}

// Bounds of what a scenario may ask for: what a machine of today can hold, and what a nanosecond of resolution can tell apart.
const (
	clientsMax = 10_000_000
	cpusMax    = 8192 // what a kernel can be built for (CONFIG_NR_CPUS of x86)
	demandMax  = 1e9
)

// scheme is the scenario's scheme of overload control.
func (s Scenario) scheme() (baseline.Scheme, error) {
	shape := s.Service.Shape
	if shape == workload.Lognormal {
		shape = workload.Bimodal // for which a dispersion like its own was tuned
	}
	scheme, err := baseline.Lookup(s.Scheme, baseline.Params{
		Service: s.Service.Mean, RTT: time.Duration(s.Network.RTT), SLO: time.Duration(s.SLO), Shape: shape.String(),
		Clients: s.Clients, Workers: s.Server.CPUs, Seed: s.Seed,
		Tuning: s.Law.tuning(),
	})
	if err != nil {
		return baseline.Scheme{}, fmt.Errorf("%w: %w", ErrScenario, err)
	}
	return scheme, nil
}
