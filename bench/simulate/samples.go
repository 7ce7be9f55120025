package simulate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// ReadSamples reads service times that were measured somewhere: one duration a line, as "12.5us"; empty lines and what follows a # are skipped.
func ReadSamples(r io.Reader) ([]Duration, error) {
	var all []Duration
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: line %d: %w: write one duration a line, like 12.5us", ErrScenario, number, err)
		case d < 0 || d > workload.MaxWork:
			return nil, fmt.Errorf("%w: line %d: %v: a service time is from 0 to %v", ErrScenario, number, d, workload.MaxWork)
		case len(all) == samplesMax:
			return nil, fmt.Errorf("%w: more than %d samples: take every n-th", ErrScenario, samplesMax)
		}
		all = append(all, Duration(d))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read service times: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no service times: write one duration a line, like 12.5us", ErrScenario)
	}
	return all, nil
}

// samplesMax keeps a scenario's file readable.
const samplesMax = 1 << 20

// samples draws each of them with the same probability.
type samples []Duration

// Sample draws one.
func (s samples) Sample(rng *rand.Rand) time.Duration { return time.Duration(s[rng.IntN(len(s))]) }

// nearest is the distribution of a known shape with the samples' mean and a dispersion like theirs: what published settings are looked up by.
func (s samples) nearest() workload.ServiceTime {
	var sum, squares float64
	for _, d := range s {
		sum += float64(d)
		squares += float64(d) * float64(d)
	}
	n := float64(len(s))
	mean := sum / n
	out := workload.ServiceTime{Shape: workload.Constant, Mean: time.Duration(math.Round(mean))}
	// The coefficient of variation is 0 for constant, 1 for exponential and 1.5 for bimodal times; the bounds lie halfway.
	switch variation := math.Sqrt(max(squares/n-mean*mean, 0)) / max(mean, 1); {
	case variation >= 1.25:
		out.Shape = workload.Bimodal
	case variation >= 0.5:
		out.Shape = workload.Exponential
	}
	return out
}
