package report

import (
	"math"
	"strconv"
	"strings"
)

// Format is how an axis or a cell writes its numbers.
type Format uint8

// The formats. They write what fits a tick label: three digits and a unit.
const (
	Plain    Format = iota // 12.5, 1500
	Count                  // 12.5k, 1.5M: rates and credits
	Duration               // nanoseconds, as 1.5 µs, 20 ms
	Percent                // a share of 1, as 95 %
)

// Text writes v, with a non-breaking space before a unit.
func (f Format) Text(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	switch f {
	case Count:
		return scaled(v, []unit{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}})
	case Duration:
		return scaled(v, []unit{{1, "\u00a0ns"}, {1e3, "\u00a0µs"}, {1e6, "\u00a0ms"}, {1e9, "\u00a0s"}})
	case Percent:
		return digits(v*100) + "\u00a0%"
	default:
		return digits(v)
	}
}

// unit is a factor and the text that stands for it.
type unit struct {
	factor float64
	name   string
}

// scaled writes v in the largest unit that leaves at least 1 before the point. Rounding comes first, so that 999.9 is
// "1k" and not "1000".
func scaled(v float64, units []unit) string {
	if v == 0 {
		return "0"
	}
	chosen := units[0]
	for _, u := range units {
		if math.Abs(v) >= u.factor*0.9995 {
			chosen = u
		}
	}
	return digits(v/chosen.factor) + chosen.name
}

// digits writes three significant digits, never an exponent, and no zeros after the last one that counts.
func digits(v float64) string {
	decimals := 0
	switch a := math.Abs(v); {
	case a == 0:
	case a < 0.9995:
		decimals = min(2-int(math.Floor(math.Log10(a))), 9)
	case a < 9.995:
		decimals = 2
	case a < 99.95:
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}
