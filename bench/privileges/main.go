//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bpf"
)

// speedMin bounds what nobody serves, as a share of what root does in the same round.
const speedMin = 0.97

// boundAt is how many calls are outstanding where the bound stands: the server always has something to do.
const boundAt = 64

const payloadBytes = 64

var outstanding = []int{1, 16, boundAt}

// The variants.
const (
	root = iota
	nobody
	variantCount
)

var names = [variantCount]string{root: "root, a program of its own", nobody: "nobody, CAP_NET_RAW, pinned program"}

// nobodyID is user and group nobody on every Linux system (the kernel's overflow id).
const nobodyID = 65534

// settings are the flags.
type settings struct {
	window, warmup time.Duration
}

// experiment holds throughput and tail latency by variant, by place in outstanding, and by round.
type experiment struct {
	settings
	seed uint64
	perS [variantCount][][]float64
	p99  [variantCount][][]float64
	mode string
}

func main() {
	var s settings
	prove.Command{
		Name: "privileges", Rounds: 25,
		About: "Compares a server as root with one as nobody, with CAP_NET_RAW alone on a pinned program, by closed-loop 64-byte echoes.",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&s.window, "window", 300*time.Millisecond, "measured time of each figure")
			f.DurationVar(&s.warmup, "warmup", 100*time.Millisecond, "load before it")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			e, err := measure(ctx, r, s)
			if err != nil {
				return err
			}
			return e.show(r)
		},
	}.Main()
}

// measure runs both in each round, in processes of their own, and lets the other one be first each time.
func measure(ctx context.Context, r *prove.Run, s settings) (*experiment, error) {
	e := &experiment{settings: s, seed: r.Seed}
	for v := range names {
		e.perS[v], e.p99[v] = make([][]float64, len(outstanding)), make([][]float64, len(outstanding))
	}
	for round := range r.Rounds {
		for i := range names {
			v := (i + round) % variantCount
			one := e.asRoot
			if v == nobody {
				one = e.asNobody
			}
			if err := one(ctx, r); err != nil {
				return nil, fmt.Errorf("%s: %w", names[v], err)
			}
		}
		r.Advance()
	}
	return e, nil
}

func (e *experiment) asRoot(ctx context.Context, r *prove.Run) error {
	return r.WithPair(ctx, func(p *child.Pair) error {
		return e.echo(ctx, p, root, child.ServeRequest{})
	})
}

// asNobody loads and pins as `stillwater xdp load --group nobody` does, and starts the server's process as somebody who could not.
func (e *experiment) asNobody(ctx context.Context, r *prove.Run) error {
	pins, err := lab.NewBPFFS()
	if err != nil {
		return err
	}
	defer pins.Close()
	p, err := r.PairOf(ctx, child.Config{
		ServerUser:  &lab.User{UID: nobodyID, GID: nobodyID, Capabilities: []uintptr{unix.CAP_NET_RAW}},
		ServerFiles: []*os.File{pins},
		Prepare:     func(pair *lab.Pair) error { return pin(pair.A, filepath.Join(lab.DescriptorPath(pins.Fd()), folder)) },
	})
	if err != nil {
		return fmt.Errorf("starting the lab: %w", err)
	}
	return errors.Join(e.asNobodyIn(ctx, p), p.Close())
}

// folder has the pins, in their file system.
const folder = "veth0"

func (e *experiment) asNobodyIn(ctx context.Context, p *child.Pair) error {
	if err := checkRights(p.Lab.Server.PID()); err != nil {
		return err
	}
	err := e.echo(ctx, p, nobody, child.ServeRequest{PinPath: filepath.Join(lab.DescriptorPath(lab.FirstFile), folder)})
	return errors.Join(err, checkRights(p.Lab.Server.PID()))
}

// pin attaches a program at an end and pins it. The pins hold it from then on.
func pin(at *lab.End, dir string) error {
	return at.Do(func() (err error) {
		program, err := bpf.Load(bpf.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, program.Close()) }()
		if _, err := program.Attach(at.Index, bpf.ModeAuto); err != nil {
			return err
		}
		return program.Pin(dir, nobodyID)
	})
}

// echo measures one variant at all numbers outstanding.
func (e *experiment) echo(ctx context.Context, p *child.Pair, v int, s child.ServeRequest) error {
	server, err := p.ServeAndDial(ctx, s, 1)
	if err != nil {
		return err
	}
	if e.mode == "" {
		e.mode = server.Mode
	}
	if server.Mode != e.mode {
		return fmt.Errorf("it serves by %q, the other one by %q", server.Mode, e.mode)
	}
	if err := p.Round(ctx); err != nil { // both know where the other is
		return err
	}
	for i, n := range outstanding {
		plan := load.Plan{PayloadBytes: payloadBytes, Warmup: e.warmup, Duration: e.window, Seed: e.seed}
		result, err := prove.Closed(ctx, p, target.MethodEcho, n, plan)
		if err != nil {
			return err
		}
		e.perS[v][i] = append(e.perS[v][i], result.ThroughputPerS)
		e.p99[v][i] = append(e.p99[v][i], float64(result.LatencyNsP99))
	}
	return p.Audit(ctx)
}
