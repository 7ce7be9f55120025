//go:build linux && !portable

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/demo"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

const demoLong = `Runs the main experiment: a server whose requests take 10 us, in one network namespace, and a load generator with
1,000 clients in another, joined by a veth pair, both on AF_XDP sockets. It measures what the server can do, then offers it 0.2 to 2
times of that, once without control and once with credits, and at last lets the load fall from 2x to 0.5x to see how fast the tail comes back.

Nothing is left behind: the namespaces have no name and end with their processes. Without root, or where AF_XDP is not to be had, it runs
over kernel UDP on loopback, and says so. It takes about a minute, and wants two CPUs that nobody else uses.`

// demoFlags are the flags of demo.
type demoFlags struct {
	html     string
	sessions int
	work     workload.ServiceTime
	window   time.Duration
	steps    int
	seed     uint64
	loopback bool
	ipv6     bool
	mode     sw.Mode
	check    bool
}

func newDemo(c *cli) *cobra.Command {
	f := demoFlags{work: workload.ServiceTime{Shape: workload.Constant, Mean: 10 * time.Microsecond}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what credits do: a server at up to twice its capacity, with and without them",
		Long:  demoLong,
		Example: "  stillwater demo\n" +
			"  stillwater demo --ipv6\n" +
			"  stillwater demo -o jsonl --html ''",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.demo(f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.html, "html", "stillwater-demo.html", "write the report with the curves to this `file`; '' writes none")
	flags.IntVar(&f.sessions, "sessions", 1000, "virtual clients")
	flags.Var(&f.work, "service-time", "work of a request, as `shape:mean`: constant, exponential, bimodal or lognormal")
	flags.DurationVar(&f.window, "window", time.Second, "measured `time` of each step")
	flags.IntVar(&f.steps, "steps", 5, "repetitions of the fall from 2x to 0.5x")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of arrivals, service times and clients")
	flags.BoolVar(&f.loopback, "loopback", false, "run over kernel UDP on loopback, also where AF_XDP is to be had")
	flags.Var((*rung)(&f.mode), "mode",
		"what carries packets: `rung` is auto (the best that works, or loopback), or exactly zero-copy, copy, generic (all AF_XDP) or udp (kernel UDP)")
	flags.BoolVar(&f.ipv6, "ipv6", false, "run over IPv6 instead of IPv4")
	flags.BoolVar(&f.check, "check", false, "exit with 3 unless the figures are as the README states them")
	return cmd
}

// demo runs the experiment with this program as both of its children.
func (c *cli) demo(f demoFlags) error {
	if f.sessions < 1 || f.steps < 1 { // zero is the package's word for its default
		return usageError("--sessions %d, --steps %d: at least 1", f.sessions, f.steps)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to start it twice: %w", err)
	}
	errOut, ok := c.stderr.(*os.File)
	if !ok {
		if errOut, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			return err
		}
		defer errOut.Close()
	}
	cfg := demo.Config{
		Executable: self, ServerArgs: []string{labName, labServerName}, ClientArgs: []string{labName, labClientName},
		Out: c.stdout, Err: errOut, JSON: !c.text(), HTML: f.html, Command: "stillwater " + strings.Join(c.args, " "),
		Sessions: f.sessions, Service: f.work, Window: f.window, Steps: f.steps, Seed: f.seed, IPv6: f.ipv6, Mode: f.mode,
	}
	if f.loopback {
		cfg.Loopback, cfg.Why = true, "--loopback was given"
	}
	result, err := demo.Run(c.ctx, cfg)
	switch {
	case errors.Is(err, demo.ErrPlan):
		return usageError("%w", err)
	case err != nil:
		return err
	case f.check && !result.Passed:
		return checkError(errors.New(result.Missed()))
	}
	return nil
}
