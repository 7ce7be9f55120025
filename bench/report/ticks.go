package report

import (
	"math"

	"gonum.org/v1/plot"
)

// linearTicks are labels at multiples of 1, 2 or 5, about six of them.
type linearTicks struct{ format Format }

// linearTarget is how many intervals an axis should have, more or less.
const linearTarget = 6

// step returns the distance of the labels.
func (t linearTicks) step(lo, hi float64) float64 {
	raw := (hi - lo) / linearTarget
	if raw <= 0 || math.IsInf(raw, 0) || math.IsNaN(raw) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power*1.0001 {
			return m * power
		}
	}
	return 10 * power
}

// Ticks satisfies plot.Ticker.
func (t linearTicks) Ticks(lo, hi float64) []plot.Tick {
	step := t.step(lo, hi)
	var ticks []plot.Tick
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+step*1e-9; i++ {
		v := i * step
		ticks = append(ticks, plot.Tick{Value: v, Label: t.format.Text(v)})
	}
	return ticks
}

// nameTicks are names at 0, 1, 2 and so on.
type nameTicks []string

// nameMargin is the room left and right of the outermost names, of which two are 1 apart.
const nameMargin = 0.25

// Ticks satisfies plot.Ticker.
func (t nameTicks) Ticks(_, _ float64) []plot.Tick {
	ticks := make([]plot.Tick, len(t))
	for i, name := range t {
		ticks[i] = plot.Tick{Value: float64(i), Label: name}
	}
	return ticks
}

// logTicks are labels at powers of ten, and at 2 and 5 times those where there is room for them.
type logTicks struct{ format Format }

// narrowDecades is the span below which the powers of ten alone would be too few.
const narrowDecades = 2.2

// Ticks satisfies plot.Ticker.
func (t logTicks) Ticks(lo, hi float64) []plot.Tick {
	narrow := math.Log10(hi/lo) < narrowDecades
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			tick := plot.Tick{Value: v}
			if m == 1 || narrow && (m == 2 || m == 5) {
				tick.Label = t.format.Text(v)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// niceLinear widens lo..hi to whole label steps, and to zero where that is near.
func niceLinear(lo, hi float64) (float64, float64) {
	if lo > 0 && lo < hi/2 {
		lo = 0
	}
	if hi <= lo {
		hi = lo + 1
	}
	step := linearTicks{}.step(lo, hi)
	return math.Floor(lo/step+1e-9) * step, math.Ceil(hi/step-1e-9) * step
}

// niceLog widens lo..hi to 1, 2 or 5 times a power of ten.
func niceLog(lo, hi float64) (float64, float64) {
	down, up := math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Floor(math.Log10(hi)))
	for _, m := range []float64{5, 2} {
		if down*m <= lo*1.0001 {
			down *= m
			break
		}
	}
	for _, m := range []float64{1, 2, 5, 10} {
		if up*m >= hi*0.9999 {
			up *= m
			break
		}
	}
	if up <= down {
		up = down * 10
	}
	return down, up
}
