package client

import "time"

// HedgeConfig sets a [Hedge]. The zero value hedges nothing.
type HedgeConfig struct {
	// Percentile of the latencies after which a second request is sent, like 0.95: then at most a twentieth of the calls has one. 0 = no hedging.
	Percentile float64
	Min        time.Duration // never earlier; 0 = 50 us, which timers can hold
	Max        time.Duration // never later; 0 = any time
}

const hedgeMinDefault = 50 * time.Microsecond

// Hedge says when a call is slow enough for a second request to be sent beside the first (J. Dean and L. A. Barroso, "The Tail at Scale", CACM 2013: hedged requests
// after the 95th percentile cost 5 % and take the tail away where it is not the load that makes it).
//
// Its delay runs from when the request is first sent, not from when the call is made: what waits for a credit is not slow, its server is busy.
type Hedge struct {
	cfg     HedgeConfig
	latency Percentile
}

// NewHedge makes one that knows nothing yet.
func NewHedge(cfg HedgeConfig) Hedge {
	cfg.Percentile = min(max(cfg.Percentile, 0), 1)
	if cfg.Min <= 0 {
		cfg.Min = hedgeMinDefault
	}
	return Hedge{cfg: cfg, latency: NewPercentile(cfg.Percentile)}
}

// Sample learns how long a request took from when it was first sent, or for how long one has had no answer when it was broken off.
func (h *Hedge) Sample(latency time.Duration) {
	if h.cfg.Percentile > 0 {
		h.latency.Sample(latency)
	}
}

// Delay is how long after a request a second one is to be sent; false = never: it is off, or has seen too few answers.
func (h *Hedge) Delay() (time.Duration, bool) {
	if h.cfg.Percentile == 0 {
		return 0, false
	}
	d, known := h.latency.Value()
	d = max(d, h.cfg.Min)
	if h.cfg.Max > 0 {
		d = min(d, h.cfg.Max)
	}
	return d, known
}
