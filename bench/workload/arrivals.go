package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Process is the law by which requests arise.
type Process uint8

// The arrival processes of an open loop.
const (
	Poisson Process = iota // independent users: exponential gaps
	Fixed                  // a metronome: equal gaps
)

// processNames is indexed by Process.
var processNames = [...]string{Poisson: "poisson", Fixed: "fixed"}

// String returns the word that UnmarshalText accepts.
func (p Process) String() string {
	if int(p) < len(processNames) {
		return processNames[p]
	}
	return fmt.Sprintf("process(%d)", uint8(p))
}

// Set is UnmarshalText for command line flags.
func (p *Process) Set(text string) error {
	for i, name := range processNames {
		if name == text {
			*p = Process(i)
			return nil
		}
	}
	return fmt.Errorf("parse arrivals %q: write poisson or fixed", text)
}

// Type names the value in the help of a command line flag.
func (p *Process) Type() string { return "poisson|fixed" }

// MarshalText makes results carry the same words as the command line.
func (p Process) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads "poisson" or "fixed".
func (p *Process) UnmarshalText(text []byte) error { return p.Set(string(text)) }

// never is the due instant of a request at rate zero.
const never = clock.Time(math.MaxInt64)

// Arrivals yields the instants at which requests are due. They depend on start, rate and seed alone, never on when they
// are asked for: who is late finds several of them due, and skips none.
//
// The gap to the next arrival is kept in multiples of the mean gap, so that a change of rate stretches what is left of
// it. For a Poisson process that is exact (it is a time change of the unit process), and rate zero needs no special case.
type Arrivals struct {
	process Process
	rand    *rand.Rand
	start   clock.Time
	origin  float64 // ns since start; the instant at which left was last brought up to date
	left    float64 // mean gaps from origin to the next arrival
	rate    float64 // arrivals per ns
}

// NewArrivals returns the arrivals at perSecond from start on.
func NewArrivals(process Process, start clock.Time, perSecond float64, seed uint64) *Arrivals {
	a := &Arrivals{
		process: process,
		rand:    rand.New(rand.NewPCG(seed, streamArrivals)),
		start:   start,
		rate:    max(perSecond, 0) / 1e9,
	}
	a.left = a.gap()
	return a
}

// Due returns the instant of the next arrival, far in the future when the rate is zero.
func (a *Arrivals) Due() clock.Time {
	if a.rate == 0 {
		return never
	}
	ns := a.origin + a.left/a.rate
	if ns >= float64(never-a.start) {
		return never
	}
	return a.start + clock.Time(ns+0.5)
}

// Advance moves on to the arrival after the one that Due named.
func (a *Arrivals) Advance() {
	if a.rate == 0 {
		return
	}
	a.origin += a.left / a.rate
	a.left = a.gap()
}

// SetRate changes the rate at the instant at, which must lie between the last arrival taken and the next one due.
func (a *Arrivals) SetRate(at clock.Time, perSecond float64) {
	ns := float64(at - a.start)
	a.left = max(a.left-(ns-a.origin)*a.rate, 0)
	a.origin = ns
	a.rate = max(perSecond, 0) / 1e9
}

// gap draws the time to the next arrival in mean gaps.
func (a *Arrivals) gap() float64 {
	if a.process == Fixed {
		return 1
	}
	return a.rand.ExpFloat64()
}
