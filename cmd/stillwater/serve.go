package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

const schemaServe = "stillwater.serve.v1"

// serveFlags are the flags of serve.
type serveFlags struct {
	endpointFlags
	server        sw.ServerConfig
	scheme        scheme
	tuneFor       workload.ServiceTime // the zero value = not given
	work          work
	seed          uint64
	statsInterval time.Duration
	drop          bool
}

// serveReady is the line that says where the server can be called.
type serveReady struct {
	Event   string   `json:"event"`     // ready
	Address string   `json:"address"`   // the first of Addresses
	All     []string `json:"addresses"` // one, or one of each family
	Port    string   `json:"port"`      // xdp or udp
	Mode    string   `json:"mode"`
	Methods []string `json:"methods"`
	SLO     int64    `json:"slo_ns"`
	Scheme  string   `json:"scheme"`
	PID     int      `json:"pid"`
}

// serveStats is a line of the counters: event stats while the server runs, stopped at its end.
type serveStats struct {
	Event  string        `json:"event"`
	Uptime time.Duration `json:"uptime_ns"`
	statsData
}

const serveLong = `Serve the methods echo, spin (compute for the time in the payload) and sleep (block for it).
With --work it also serves the method work, whose service time the server draws itself.

The line that it prints at the start says that calls will be answered from now on, and what carries them. Where
AF_XDP is not to be had it serves on kernel UDP and says why. The first SIGINT or SIGTERM drains: new requests are refused,
admitted ones are answered. The second stops at once.`

func newServe(c *cli) *cobra.Command {
	f := &serveFlags{scheme: sw.SchemeStillwater}
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve echo and synthetic work",
		Long:    serveLong,
		Example: "  stillwater serve --interface eth1 --slo 200us --work spin:exponential:10us --stats-interval 1s",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return serve(c, f) },
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.Uint16Var(&f.Port, "port", defaultPort, "UDP `port`; 0 = a free one")
	flags.BoolVar(&f.TrustedNetwork, "trusted-network", false,
		"serve first contacts at once, without proof that they receive at their address")
	flags.DurationVar(&f.server.SLO, "slo", 200*time.Microsecond, "`latency` that callers are promised; the control steers by it")
	flags.Var(&f.scheme, "scheme", "overload control: "+schemeUsage)
	flags.Var(&f.tuneFor, "scheme-work", "work that the settings of --scheme are for, `shape:mean`; not given = that of --work, else exponential:10us")
	flags.BoolVar(&f.server.NoFloor, "no-floor", false, "let a session that was just served fall to no credit at all")
	flags.IntVar(&f.server.Workers, "workers", 0, "most requests in service, blocked ones included; 0 = 256")
	flags.IntVar(&f.server.QueueMax, "queue-max", 0, "most requests that wait; 0 = 131,072, for schemes that do not keep the queue short by themselves")
	flags.BoolVar(&f.server.FixedWorkers, "fixed-workers", false, "let as many into service as --workers says, also while handlers wait for a device or for each other and end too late")
	flags.IntVar(&f.server.Parallel, "parallel", 0, "handlers that can compute at the same time; 0 = GOMAXPROCS")
	f.admission(flags)
	flags.DurationVar(&f.server.DrainTimeout, "drain-timeout", 5*time.Second, "how long to wait for admitted requests at the end")
	flags.Var(&f.work, "work", "serve the method work: `kind:shape:mean`, like spin:exponential:10us or sleep:bimodal:1ms")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the service times of --work")
	flags.DurationVar(&f.statsInterval, "stats-interval", 0, "print a line of statistics this often; 0 = never")
	flags.BoolVar(&f.drop, "drop-privileges", false,
		"give up all capabilities once the port is open; what the interface loses after that cannot be opened again")
	return cmd
}

// admission are the flags of what decides about a request besides the scheme.
func (f *serveFlags) admission(flags *pflag.FlagSet) {
	a := &f.server.Admission
	flags.DurationVar(&a.Order.NewestFirst, "newest-first", 0, "serve the newest first while the oldest has waited for longer; 0 = never")
	flags.BoolVar(&a.Tail, "tail-bound", false, "refuse what leaves no room for its method's p99, not only for the mean")
	flags.IntVar(&a.ClientRate, "client-rate", 0, "most requests a second of each client's connection; 0 = any")
	flags.DurationVar(&a.Warmup, "warmup", 0, "admit a growing share until the server has been at it for so long; 0 = all at once")
	flags.Float64Var(&a.Headroom, "headroom", 0, "share of the CPUs to keep free, 0 to 1")
}

// check refuses what the runtime would only misunderstand.
func (f *serveFlags) check() error {
	f.server.Scheme, f.server.Tuning = string(f.scheme), tuned(cmp.Or(f.tuneFor, f.work.time))
	switch {
	case f.server.SLO <= 0:
		return usageError("--slo %v: it must be above 0, like 200us", f.server.SLO)
	case f.server.Workers < 0 || f.server.Parallel < 0 || f.server.QueueMax < 0:
		return usageError("--workers, --parallel and --queue-max cannot be negative; 0 takes the default")
	case f.server.DrainTimeout <= 0:
		return usageError("--drain-timeout %v: it must be above 0, like 5s", f.server.DrainTimeout)
	case f.server.Admission.Order.NewestFirst < 0 || f.server.Admission.Warmup < 0 || f.server.Admission.ClientRate < 0:
		return usageError("--newest-first, --warmup and --client-rate cannot be negative; 0 is off")
	case !(f.server.Admission.Headroom >= 0 && f.server.Admission.Headroom <= 1):
		return usageError("--headroom %v: it is a share, 0 to 1; 0 is none", f.server.Admission.Headroom)
	case f.statsInterval < 0:
		return usageError("--stats-interval %v: it cannot be negative; 0 is never", f.statsInterval)
	}
	return nil
}

// serve opens the port, registers the methods, says so, and serves until a signal.
func serve(c *cli, f *serveFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	ep, err := c.open(&f.endpointFlags)
	if err != nil {
		return err
	}
	defer func() {
		if c.hurry.Err() != nil {
			// Closing waits for the handlers, which a second signal forbids; the end of the process closes everything.
			return
		}
		err = errors.Join(err, ep.Close())
	}()
	f.server.Shared = ep // and not the server's own, so that the counters can still be read after the drain
	srv, err := sw.NewServer(f.server)
	if err != nil {
		return err
	}
	methods, err := f.registerMethods(srv)
	if err != nil {
		return err
	}
	stats, err := newStatsPrinter(c, srv)
	if err != nil {
		return err // the loop does not run, so nothing would be answered
	}
	if f.drop {
		if err := dropPrivileges(); err != nil {
			return err
		}
	}
	systemd, err := findManager(c.getenv)
	if err != nil {
		return err
	}
	if err := c.printReady(ep, f, methods); err != nil {
		return errors.Join(err, systemd.close())
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { systemd.watch(func() error { _, err := srv.Stats(); return err }, stop) })
	systemd.tell("READY=1\nSTATUS=" + ep.Mode())
	context.AfterFunc(c.ctx, func() { systemd.tell("STOPPING=1") })
	err = f.untilStopped(c, srv, stats)
	close(stop)
	watching.Wait()
	return errors.Join(err, systemd.close())
}

// registerMethods adds the methods of experiments and names them.
func (f *serveFlags) registerMethods(srv *sw.Server) ([]string, error) {
	if err := target.Register(srv); err != nil {
		return nil, err
	}
	methods := []string{target.MethodEcho, target.MethodSpin, target.MethodSleep}
	if f.work.kind != "" {
		if err := srv.Handle(methodWork, f.work.handler(f.seed)); err != nil {
			return nil, err
		}
		methods = append(methods, methodWork)
	}
	slices.Sort(methods)
	return methods, nil
}

func (c *cli) printReady(ep *sw.Endpoint, f *serveFlags, methods []string) error {
	if !c.text() {
		return c.printLine(schemaServe, serveReady{
			Event: "ready", Address: ep.Addr(), All: ep.Addrs(), Port: ep.PortName(), Mode: ep.Mode(), Methods: methods,
			SLO: int64(f.server.SLO), Scheme: string(f.scheme), PID: os.Getpid(),
		})
	}
	return c.print(fmt.Sprintf("serving %s on %s over %s; SLO %v, scheme %s\n",
		strings.Join(methods, ", "), strings.Join(ep.Addrs(), " and "), ep.Mode(), f.server.SLO, f.scheme))
}

// untilStopped prints statistics until the server has drained, or a second signal forbids to wait for that.
func (f *serveFlags) untilStopped(c *cli, srv *sw.Server, stats *statsPrinter) error {
	drained := make(chan error, 1)
	go func() { drained <- srv.Serve(c.ctx) }()
	var tick <-chan time.Time
	if f.statsInterval > 0 {
		ticker := time.NewTicker(f.statsInterval)
		defer ticker.Stop()
		tick = ticker.C
	}
	draining := c.ctx.Done()
	for {
		select {
		case <-tick:
			if err := stats.print("stats"); err != nil {
				return err
			}
		case <-draining:
			draining = nil
			c.log.Info("draining: new requests are refused; a second signal stops at once", "timeout", f.server.DrainTimeout)
		case <-c.hurry.Done():
			return errors.New("stopped at once by a second signal: admitted requests were left unanswered")
		case err := <-drained:
			return errors.Join(err, stats.print("stopped"))
		}
	}
}
