package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Sweep is a scenario under several schemes, and under several loads. A file of a [Scenario] is one, too: of one run.
type Sweep struct {
	Scenario
	Schemes []string  `json:"schemes,omitempty"` // empty = the scenario's
	Loads   []float64 `json:"loads,omitempty"`   // multiples of the capacity, instead of a demand
	Calls   int       `json:"calls,omitempty"`   // measured at each load, instead of a time
}

// ReadSweep reads the file of a sweep or of a scenario. A field that it does not know is an error.
func ReadSweep(r io.Reader) (Sweep, error) {
	var w Sweep
	if err := decode(r, &w); err != nil {
		return Sweep{}, err
	}
	return w, w.Validate()
}

// decode reads one value, and nothing behind it.
func decode(r io.Reader, into any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrScenario, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something stands behind it", ErrScenario)
	}
	return nil
}

// Text is the sweep's file.
func (w Sweep) Text() ([]byte, error) { return encode(w) }

// Validate says what is wrong with a sweep, if anything.
func (w Sweep) Validate() error {
	switch {
	case len(w.Loads) > 0 && len(w.Demand) > 0:
		return fmt.Errorf("%w: both loads and a demand: give one of them", ErrScenario)
	case w.Calls != 0 && len(w.Loads) == 0:
		return fmt.Errorf("%w: calls are of a load: give loads, or measure a time", ErrScenario)
	case w.Calls < 0 || w.Calls > 0 && w.Measure != 0:
		return fmt.Errorf("%w: %d calls, and %v to be measured: give one of them", ErrScenario, w.Calls, time.Duration(w.Measure))
	}
	for _, load := range w.Loads {
		if !(load > 0 && load <= loadMax) {
			return fmt.Errorf("%w: load %v: above 0, and at most %v times the capacity", ErrScenario, load, loadMax)
		}
	}
	if c := w.Scenario.Capacity(); c > demandMax {
		return fmt.Errorf("%w: a server that could answer %.3g/s, more than %g: give its handlers more time, or it fewer CPUs", ErrScenario, c, demandMax)
	}
	for _, s := range w.Scenarios() {
		if err := s.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// loadMax is beyond every flood that a server could notice.
const loadMax = 1000.0

// Scenarios are the runs: load by load, and at each of them scheme by scheme.
func (w Sweep) Scenarios() (all []Scenario) {
	schemes := w.Schemes
	if len(schemes) == 0 {
		schemes = []string{w.Scheme}
	}
	loads := w.Loads
	if len(loads) == 0 {
		loads = []float64{0}
	}
	for _, load := range loads {
		s := w.Scenario
		if load > 0 {
			demand := load * s.Capacity()
			s.Demand = []Step{{PerS: demand}}
			if w.Calls > 0 {
				s.Measure = Duration(float64(w.Calls) / demand * float64(time.Second))
			}
		}
		for _, scheme := range schemes {
			s.Scheme = scheme
			all = append(all, s)
		}
	}
	return all
}
