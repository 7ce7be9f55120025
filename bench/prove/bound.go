//go:build linux

package prove

import (
	"fmt"
	"slices"
	"strconv"
)

// Spread is what repetitions of one figure came to.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Count  int     `json:"count"`
}

// SpreadOf sorts a copy. Of an even number the median is the mean of the middle two; of nothing, all is zero.
func SpreadOf(figures []float64) Spread {
	n := len(figures)
	if n == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(figures))
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], Count: n}
}

// Text is the median and, in parentheses, the least and the greatest, each divided.
func (s Spread) Text(divide float64, decimals int) string {
	text := func(v float64) string { return strconv.FormatFloat(v/divide, 'f', decimals, 64) }
	return fmt.Sprintf("%s (%s..%s)", text(s.Median), text(s.Min), text(s.Max))
}

// Bound is a promise, and what came of it.
type Bound struct {
	Kind    string  `json:"kind"`
	Name    string  `json:"name"`
	Got     float64 `json:"got"`
	Want    float64 `json:"bound"`
	AtLeast bool    `json:"at_least"` // otherwise at most
	Unit    string  `json:"unit,omitempty"`
	Met     bool    `json:"met"`
}

// AtLeast notes a figure that must not be lower than a bound.
func (r *Run) AtLeast(name string, got, want float64, unit string) error {
	return r.bound(Bound{Name: name, Got: got, Want: want, AtLeast: true, Unit: unit, Met: got >= want})
}

// AtMost notes a figure that must not be higher than a bound.
func (r *Run) AtMost(name string, got, want float64, unit string) error {
	return r.bound(Bound{Name: name, Got: got, Want: want, Unit: unit, Met: got <= want})
}

func (r *Run) bound(b Bound) error {
	b.Kind = "bound"
	word := "at most"
	if b.AtLeast {
		word = "at least"
	}
	unit := b.Unit
	if unit != "" {
		unit = " " + unit
	}
	text := fmt.Sprintf("%s %.4g%s (%s %.4g)", b.Name, b.Got, unit, word, b.Want)
	if b.Met {
		r.met = append(r.met, text)
	} else {
		r.missed = append(r.missed, text)
	}
	return r.Emit(b)
}
