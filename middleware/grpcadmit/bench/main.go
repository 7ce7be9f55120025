//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/cpu"
)

// options are the command's.
type options struct {
	serve   string // the arm, in the server's process
	arms    string
	work    time.Duration
	slo     time.Duration
	rounds  int
	conns   int
	length  time.Duration
	seed    uint64
	permits int
	profile string
	virtual bool
	loads   []float64
}

func main() {
	var o options
	flag.StringVar(&o.serve, "serve", "", "be the server of this arm (for the command itself)")
	flag.StringVar(&o.arms, "arms", "bare,cap,ours", "the arms")
	flag.DurationVar(&o.work, "work", 10*time.Microsecond, "CPU time that a handler takes")
	flag.DurationVar(&o.slo, "slo", 2*time.Millisecond, "the middleware's SLO")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds")
	flag.IntVar(&o.conns, "connections", 8, "connections")
	flag.DurationVar(&o.length, "length", 2*time.Second, "how long each point is measured")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the arrivals")
	flag.IntVar(&o.permits, "permits", 0, "the middleware's permits; 0 = its default")
	flag.StringVar(&o.profile, "profile", "", "write the servers' CPU profiles, each named by its arm and point, to files with this prefix")
	flag.BoolVar(&o.virtual, "virtual", false, "measure on the server's CPU time, in one process over connections of memory: for machines that others use")
	loads := flag.String("loads", "1.2,2", "what is offered, in multiples of the capacity")
	flag.Parse()
	for _, text := range strings.Split(*loads, ",") {
		load, err := strconv.ParseFloat(text, 64)
		if err != nil || load <= 0 {
			fmt.Fprintf(os.Stderr, "bench: %q in -loads is no multiple of the capacity, like 1.2\n", text)
			os.Exit(2)
		}
		o.loads = append(o.loads, load)
	}
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o *options) error {
	allowed, err := cpu.Allowed()
	if err != nil {
		return err
	}
	if o.serve != "" {
		return serve(o)
	}
	if len(allowed) < 2 {
		return fmt.Errorf("only CPU %v may be used: the server and the client need one each", allowed)
	}
	if err := cpu.PinProcess(allowed[0]); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	if !o.virtual { // there, the server is in this process
		debug.SetGCPercent(400)
	}
	b := &book{points: map[point][]figures{}}
	b.header(o, allowed)
	arms := strings.Split(o.arms, ",")
	for round := range o.rounds {
		if err := b.round(o, arms, round, allowed[len(allowed)-1]); err != nil {
			return err
		}
	}
	b.show(o, arms)
	return nil
}
