package middleware

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// SLODefault is for who says nothing: a person does not notice it, and most handlers take less.
const SLODefault = 100 * time.Millisecond

// Config configures a Control. The zero value is a working one.
type Config struct {
	// SLO is the latency to keep, from the arrival of a request to its answer; 0 = SLODefault. The delay that is seen here is steered to an eighth of it,
	// and the gate is shut at a quarter: a request waits for as long again where no gate can see it, for Go's scheduler and in the answer's buffer, and its handler needs the rest.
	SLO time.Duration
	// Permits is how many requests may be in their handlers at once; 0 = 8 for each of GOMAXPROCS. Handlers that compute gain nothing from more than one a CPU, but
	// then a CPU idles while the next one is woken, or while a handler waits for something else. Handlers that mostly wait (for a database, for other servers)
	// need more: the requests a second at full load, times the seconds that one takes (Little's law).
	Permits int
	// Waiting bounds how many wait; 0 = 65536. The bound in time comes first: this one is for memory.
	Waiting int
	// Routes has settings for some requests, by the pattern of http.ServeMux ("GET /items/{id}") that matches them best, for gRPC by "/package.Service/Method" or
	// "/package.Service/". What a handler takes is learnt by route, so requests that differ much deserve one each. All others share one.
	Routes map[string]Route
	// Level says how much a request matters; nil = as its header says. For gRPC, see package grpcadmit.
	Level func(*http.Request) admit.Level
	// NewestFirst serves the newest first while the oldest has waited for longer than an eighth of the SLO: most are in time then, and some far too late.
	NewestFirst bool
	// Warmup is how long the server takes to be warm, from its first request on: it lets in a growing share until then. 0 = it is.
	Warmup time.Duration
	// Now is the clock; nil = clock.Now. Delay says how long what arrives now has waited in front of the control; nil = that is measured. They are for tests.
	Now   func() clock.Time
	Delay func(now clock.Time) time.Duration
	// Log has each use of a lever; nil = slog.Default().
	Log *slog.Logger
}

// Route is what is asked of some requests. The zero value asks nothing.
type Route struct {
	// Cost is what one of them costs, in units; 0 = 1. Rates are in units.
	Cost int
	// Rate and Burst bound the units a second; rate 0 = any, burst 0 = a tenth of a second of the rate. What is above gets 429.
	Rate, Burst int
	// InService bounds how many of them are in handlers at once, beside the permits of all others, so that those who wait for a slow device do not have all
	// permits; 0 = they take part in Config.Permits.
	InService int
	// Weight is their part of a server that has too much to do, beside other routes without an InService; 0 = 1, and while no route has one there are no parts.
	Weight int
	// Level is for those that say none; Unset = Critical.
	Level admit.Level
	// Exempt lets them pass whatever happens, and counts nothing: health checks, and connections that last, such as WebSockets.
	Exempt bool
}

// Shares of the SLO.
const (
	targetShare    = 0.125
	thresholdShare = 0.25
	maxWaitShare   = 0.35
	permitsPerCPU  = 8
)

func (c *Config) fill() {
	if c.SLO <= 0 {
		c.SLO = SLODefault
	}
	if c.Permits <= 0 {
		c.Permits = permitsPerCPU * runtime.GOMAXPROCS(0)
	}
	if c.Now == nil {
		c.Now = clock.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// gate makes the gate of all routes that share permits, or of one that has its own.
func (c *Config) gate(permits int, seed uint64) *admit.Gate {
	target := share(c.SLO, targetShare)
	g := admit.GateConfig{
		Permits: permits, Waiting: c.Waiting, MaxWait: share(c.SLO, maxWaitShare),
		Door: admit.DoorConfig{
			Target: target, Threshold: share(c.SLO, thresholdShare), Warmup: c.Warmup, CPUs: runtime.GOMAXPROCS(0), Seed: seed,
		},
	}
	if c.NewestFirst {
		g.Order = admit.OrderConfig{NewestFirst: target, Expire: g.MaxWait}
	}
	return admit.NewGate(g)
}

func share(d time.Duration, of float64) time.Duration { return time.Duration(of * float64(d)) }
