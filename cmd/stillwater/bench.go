package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/report"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

const schemaBench = "stillwater.bench.v1"

func newBench(c *cli) *cobra.Command {
	return newGroup("bench", "Generate load and measure what comes back", newBenchOpen(c), newBenchClosed(c))
}

// benchFlags are what open and closed loops have in common.
type benchFlags struct {
	endpointFlags
	load.Plan
	attempts       attemptFlags
	scheme         scheme
	method         string
	connectTimeout time.Duration
	html           string
	full           bool
	capacity       float64 // of the server, requests per second; zero = not known
}

func (f *benchFlags) register(flags *pflag.FlagSet) {
	f.endpointFlags.register(flags)
	f.attempts.register(flags)
	f.scheme = sw.SchemeStillwater
	flags.Var(&f.scheme, "scheme", "the server's overload control, if that has a half at its clients: "+schemeUsage)
	flags.StringVar(&f.method, "method", target.MethodEcho, "`method` to call; spin and sleep do the work of --service-time")
	flags.Var(&f.ServiceTime, "service-time", "work that each request asks for, `shape:mean`, like exponential:10us")
	flags.IntVar(&f.Sessions, "sessions", 1, "virtual clients, each with credits of its own")
	flags.IntVar(&f.PayloadBytes, "payload-bytes", 64, "length of each payload, at least 8")
	flags.DurationVar(&f.SLO, "slo", 200*time.Microsecond, "`latency` within which an answer is goodput; 0 = all answers are")
	flags.DurationVar(&f.Warmup, "warmup", 500*time.Millisecond, "load before the measurement")
	flags.DurationVar(&f.Duration, "duration", 5*time.Second, "length of the measurement")
	flags.Uint64Var(&f.Seed, "seed", 1, "seed of arrivals, sessions and service times")
	flags.DurationVar(&f.connectTimeout, "connect-timeout", time.Second, "how long to wait for the first answer")
	flags.StringVar(&f.html, "html", "", "write a page with tables and curves into this `file`")
	flags.BoolVar(&f.full, "full", false, "keep the time series and the histograms in JSON")
}

// check refuses what has no meaning; the plan checks the rest.
func (f *benchFlags) check() error {
	if err := f.attempts.check(); err != nil {
		return err
	}
	switch {
	case f.ServiceTime.Mean > 0 && f.method == target.MethodEcho:
		return usageError("--service-time %v does nothing with --method echo: take spin or sleep", &f.ServiceTime)
	case f.Sessions < 1:
		return usageError("--sessions %d: give at least 1", f.Sessions)
	case f.PayloadBytes < workload.WorkBytes:
		return usageError("--payload-bytes %d: give at least %d, which carry the work", f.PayloadBytes, workload.WorkBytes)
	case f.Duration <= 0 || f.connectTimeout <= 0:
		return usageError("--duration and --connect-timeout must be above 0, like 5s")
	case f.SLO < 0 || f.Deadline < 0 || f.Warmup < 0:
		return usageError("--slo, --deadline and --warmup cannot be negative; 0 is none")
	}
	return nil
}

// benchData is what bench prints as JSON.
type benchData struct {
	Address   string         `json:"address"`
	Method    string         `json:"method"`
	Port      string         `json:"port"` // xdp or udp
	Mode      string         `json:"mode"`
	Scheme    string         `json:"scheme"`
	Capacity  float64        `json:"capacity_per_s,omitempty"` // what --load multiplied
	Load      float64        `json:"load,omitempty"`           // times capacity
	SpinNs    time.Duration  `json:"spin_ns"`                  // 0 = 50 us, negative = for ever
	CPUs      []int          `json:"cpus,omitempty"`           // pinned to
	Command   string         `json:"command"`
	ElapsedNs time.Duration  `json:"elapsed_ns"`
	Result    *load.Result   `json:"result"`
	Client    statsData      `json:"client"` // the generator's own endpoint
	Machine   report.Machine `json:"machine"`
}

// bencher is a client that is connected and ready to generate load.
type bencher struct {
	c       *cli
	f       *benchFlags
	address string
	client  *sw.Client
	issuer  *target.Issuer
}

// newBencher connects, asks the method once whether it is there, and opens the sessions.
func newBencher(c *cli, f *benchFlags, address string) (b *bencher, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	f.ReasonName = target.ReasonName
	b = &bencher{c: c, f: f, address: address}
	if b.client, err = c.dial(&f.endpointFlags, address, f.client()); err != nil {
		return nil, err
	}
	if err := b.connect(); err != nil {
		return nil, errors.Join(err, b.client.Close())
	}
	if b.issuer, err = target.NewIssuer(b.client, f.Sessions, f.method); err != nil {
		return nil, errors.Join(err, b.client.Close())
	}
	b.issuer.SetClass(f.attempts.criticality.level(), f.attempts.repeatable())
	return b, nil
}

// client is the scheme's half, with settings for this load.
func (f *benchFlags) client() sw.ClientConfig {
	tuning := tuned(f.ServiceTime)
	tuning.SLO, tuning.Clients, tuning.Seed = f.SLO, f.Sessions, f.Seed
	cfg := sw.ClientConfig{Scheme: string(f.scheme), Tuning: tuning}
	f.attempts.configure(&cfg)
	return cfg
}

// connect makes one call without work. A server that is not there, or that lacks the method, should not show as a run full of
// failures. One that is only overloaded is asked again: an overload may be what the run is about.
func (b *bencher) connect() error {
	ctx, cancel := context.WithTimeout(b.c.ctx, b.f.connectTimeout)
	defer cancel()
	for {
		_, err := b.client.Call(ctx, b.f.method, make([]byte, b.f.PayloadBytes), nil)
		if err == nil {
			return nil
		}
		rejected, ok := errors.AsType[*sw.RejectedError](err)
		shed := ok && (rejected.Reason == sw.RejectOverloaded || rejected.Reason == sw.RejectRateLimited) || errors.Is(err, sw.ErrThrottled)
		if !shed || ctx.Err() != nil {
			return callError(b.address, b.f.method, err)
		}
		time.Sleep(connectPause)
	}
}

// connectPause is between two attempts at an overloaded server.
const connectPause = 5 * time.Millisecond

// run generates a load with progress, and prints what was measured. times is --load, zero if a rate was given.
func (b *bencher) run(name string, times float64, generate func(context.Context, load.Issuer) (*load.Result, error)) error {
	started := time.Now()
	stop := b.c.progress(name, b.f.Warmup+b.f.Duration)
	result, err := generate(b.c.ctx, b.issuer)
	stop()
	if err != nil {
		return err
	}
	data := benchData{
		Address: b.address, Method: b.f.method, Port: b.client.Endpoint().PortName(), Mode: b.client.Endpoint().Mode(),
		Scheme:   string(b.f.scheme),
		Capacity: b.f.capacity, Load: times, SpinNs: b.f.Spin, CPUs: b.f.cpus,
		Command: "stillwater " + strings.Join(b.c.args, " "), ElapsedNs: time.Since(started),
		Result: result, Machine: report.Facts(), // facts after the run, for reading them takes time
	}
	stats, err := b.client.Endpoint().Stats()
	if err != nil {
		return fmt.Errorf("reading the client's counters: %w", err)
	}
	data.Client = newStatsData(stats)
	if err := b.print(&data); err != nil {
		return err
	}
	if failed := result.Err(); failed != nil {
		return checkError(fmt.Errorf("this run is not to be believed: %w", failed))
	}
	return nil
}

// print prints the data and writes the page.
func (b *bencher) print(data *benchData) error {
	if b.f.html != "" {
		if err := writeBenchPage(b.f.html, data); err != nil {
			return err
		}
	}
	if b.c.text() {
		return b.c.print(benchText(data))
	}
	if !b.f.full {
		short := *data.Result
		short.Histograms, short.Buckets = nil, nil
		data.Result = &short
	}
	return b.c.printObject(schemaBench, data)
}

// end closes the sessions and the client.
func (b *bencher) end() error { return errors.Join(b.issuer.Close(), b.client.Close()) }
