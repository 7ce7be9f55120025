//go:build linux

package main

import (
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// figures of one point.
type figures struct {
	Offered, Answered, Refused float64 // a second
	In                         [3]float64
	P50, P99                   time.Duration // of the answered
	Late                       time.Duration // p99 of how late the client itself was
}

// limits are those of goodput.
var limits = [3]time.Duration{200 * time.Microsecond, time.Millisecond, 2 * time.Millisecond}

// meter counts the requests that arose in a window.
type meter struct {
	from, to            clock.Time
	offered, refused    int
	latencies, lateness []time.Duration
}

func newMeter(from, to clock.Time) *meter { return &meter{from: from, to: to} }

func (m *meter) issued(due, now clock.Time) {
	if due >= m.from && due < m.to {
		m.offered++
		m.lateness = append(m.lateness, now.Sub(due))
	}
}

func (m *meter) ended(due, now clock.Time, ok bool) {
	switch {
	case due < m.from || due >= m.to:
	case ok:
		m.latencies = append(m.latencies, now.Sub(due))
	default:
		m.refused++
	}
}

func (m *meter) figures() (f figures) {
	seconds := m.to.Sub(m.from).Seconds()
	slices.Sort(m.latencies)
	slices.Sort(m.lateness)
	f.Offered, f.Answered, f.Refused = float64(m.offered)/seconds, float64(len(m.latencies))/seconds, float64(m.refused)/seconds
	for i, limit := range limits {
		n, _ := slices.BinarySearch(m.latencies, limit+1)
		f.In[i] = float64(n) / seconds
	}
	f.P50, f.P99, f.Late = quantile(m.latencies, 0.5), quantile(m.latencies, 0.99), quantile(m.lateness, 0.99)
	return f
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
