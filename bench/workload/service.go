package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Shape is the form of a service time distribution.
type Shape uint8

// The shapes that the field compares, in growing order of dispersion.
const (
	Constant    Shape = iota // every request takes the mean
	Exponential              // the memoryless default of queueing experiments
	Bimodal                  // one request in five takes four times the mean, the others a quarter of it
	Lognormal                // a tail like those of real services: one request in a hundred takes six times the mean
)

// shapeNames is indexed by Shape.
var shapeNames = [...]string{Constant: "constant", Exponential: "exponential", Bimodal: "bimodal", Lognormal: "lognormal"}

// String returns the word that ParseServiceTime accepts.
func (s Shape) String() string {
	if int(s) < len(shapeNames) {
		return shapeNames[s]
	}
	return fmt.Sprintf("shape(%d)", uint8(s))
}

// The two modes of Bimodal; their mean is 0.2*4 + 0.8/4 = 1.
const (
	bimodalLongShare = 0.2
	bimodalLong      = 4.0
	bimodalShort     = 0.25
)

// lognormalSigma is the standard deviation of the logarithm of Lognormal. With 1, the 99th percentile is exp(2.33 - 1/2) = 6.2 times the mean.
const lognormalSigma = 1.0

// ServiceTime is a distribution of service times. The zero value is "constant:0s": no work, which is an echo.
//
// A pointer to it satisfies the flag and pflag value interfaces.
type ServiceTime struct {
	Shape Shape
	Mean  time.Duration
}

// legalServiceTimes ends every error of ParseServiceTime, since the cure is to write one of these.
const legalServiceTimes = "write constant:10us, exponential:10us, bimodal:10us or lognormal:10us (the duration is the mean, from 0 to 10s)"

// ParseServiceTime reads "shape:mean", as in "exponential:10us".
func ParseServiceTime(text string) (ServiceTime, error) {
	name, mean, found := strings.Cut(text, ":")
	if !found {
		return ServiceTime{}, fmt.Errorf("parse service time %q: the mean is missing: %s", text, legalServiceTimes)
	}
	d, err := time.ParseDuration(mean)
	if err != nil {
		return ServiceTime{}, fmt.Errorf("parse service time %q: %w: %s", text, err, legalServiceTimes)
	}
	if d < 0 || d > MaxWork {
		return ServiceTime{}, fmt.Errorf("parse service time %q: the mean is out of range: %s", text, legalServiceTimes)
	}
	for shape, n := range shapeNames {
		if n == name {
			return ServiceTime{Shape: Shape(shape), Mean: d}, nil
		}
	}
	return ServiceTime{}, fmt.Errorf("parse service time %q: unknown shape %q: %s", text, name, legalServiceTimes)
}

// String returns the form that ParseServiceTime reads.
func (s ServiceTime) String() string { return s.Shape.String() + ":" + s.Mean.String() }

// Set is ParseServiceTime for command line flags.
func (s *ServiceTime) Set(text string) error {
	parsed, err := ParseServiceTime(text)
	if err == nil {
		*s = parsed
	}
	return err
}

// Type names the value in the help of a command line flag.
func (s *ServiceTime) Type() string { return "shape:mean" }

// MarshalText makes results carry the same words as the command line.
func (s ServiceTime) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseServiceTime for JSON.
func (s *ServiceTime) UnmarshalText(text []byte) error { return s.Set(string(text)) }

// Sample draws one service time. It never exceeds MaxWork, so what it returns can always be encoded.
func (s ServiceTime) Sample(r *rand.Rand) time.Duration {
	factor := 1.0
	switch s.Shape {
	case Exponential:
		factor = r.ExpFloat64()
	case Bimodal:
		factor = bimodalShort
		if r.Float64() < bimodalLongShare {
			factor = bimodalLong
		}
	case Lognormal:
		factor = math.Exp(lognormalSigma*r.NormFloat64() - lognormalSigma*lognormalSigma/2)
	}
	return min(time.Duration(factor*float64(s.Mean)+0.5), MaxWork)
}

// The streams of one seed. Each kind of draw has its own generator, so that a change in one (more clients, another
// service time) leaves the others' sequences as they were.
const (
	streamArrivals uint64 = 1 + iota
	streamService
	streamSessions
)

// ServiceRand returns the generator from which the service times of a run are drawn.
func ServiceRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, streamService)) }

// SessionRand returns the generator that picks the virtual client of each request.
func SessionRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, streamSessions)) }
