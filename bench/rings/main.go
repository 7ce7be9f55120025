//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/prove"
)

// transmitMin is how much faster ours must send in bursts of 32 than asavie/xdp as its examples use it. Tuned it has no such bound: the kernel
// takes nearly all of the time of a burst, and no rings can make that less.
const transmitMin = 1.15

// arms are what is compared, ours first.
var arms = [...]string{armOwn, exampleArm: armAsavie, armTuned}

// exampleArm is the place in arms of asavie/xdp as its examples use it.
const exampleArm = 1

// settings are the flags.
type settings struct {
	span
	Look time.Duration // from one look for received packets to the next
}

// The measures by their place in figures.
const (
	sendOne = iota
	sendBurst
	receiveSpin
	receiveSleep
	collect
	echoSpinP50
	echoSpinP99
	echoSleepP50
	echoSleepP99
	measureCount
)

// measures say what a figure is.
var measures = [measureCount]struct {
	name, unit string
	decimals   int
	slow       bool // a lower figure is the better one
}{
	sendOne:      {name: "sent, one at a time", unit: "packets/s"},
	sendBurst:    {name: "sent, in bursts of 32", unit: "packets/s"},
	receiveSpin:  {name: "received, spinning", unit: "packets/s"},
	receiveSleep: {name: "received, sleeping", unit: "packets/s"},
	collect:      {name: "taken off the RX ring", unit: "ns", decimals: 3, slow: true},
	echoSpinP50:  {name: "round trip, spinning, p50", unit: "ns", decimals: 2, slow: true},
	echoSpinP99:  {name: "round trip, spinning, p99", unit: "ns", decimals: 2, slow: true},
	echoSleepP50: {name: "round trip, sleeping, p50", unit: "ns", decimals: 2, slow: true},
	echoSleepP99: {name: "round trip, sleeping, p99", unit: "ns", decimals: 2, slow: true},
}

// experiment holds figures by arm, measure and round.
type experiment struct {
	settings
	got  [len(arms)][measureCount][]float64
	lost [len(arms)]uint64 // sent, and not counted at the other end, or not come back
}

func main() {
	children()
	var s settings
	prove.Command{
		Name: "rings", Rounds: 7,
		About: "Compares our AF_XDP rings with those of github.com/asavie/xdp: sending, receiving, and round trips of 64-byte packets.",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&s.Window, "window", 300*time.Millisecond, "measured time of each figure")
			f.DurationVar(&s.Warmup, "warmup", 100*time.Millisecond, "load before it")
			f.DurationVar(&s.Look, "look", 5*time.Microsecond, "time from one look to the next of who receives as much as comes; 0 = at once")
		},
		Run: func(ctx context.Context, r *prove.Run) error {
			if s.Window <= 0 || s.Warmup < 0 || s.Look < 0 {
				return errors.New("-window must be above 0, -warmup and -look not below")
			}
			e, err := measure(ctx, r, s)
			if err != nil {
				return err
			}
			return e.show(r)
		},
	}.Main()
}

// measure runs both arms in each round, and lets the other one be first each time.
func measure(ctx context.Context, r *prove.Run, s settings) (*experiment, error) {
	e := &experiment{settings: s}
	for round := range r.Rounds {
		for i := range arms {
			arm := (i + round) % len(arms)
			if err := e.one(ctx, r, arm); err != nil {
				return nil, fmt.Errorf("%s: %w", arms[arm], err)
			}
		}
		r.Advance()
	}
	return e, nil
}

// one has fresh processes take all measures of one arm.
func (e *experiment) one(ctx context.Context, r *prove.Run, arm int) (err error) {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	node := func(cpu int, args ...string) lab.Node {
		if runtime.NumCPU() < 2 {
			cpu = -1
		}
		return lab.Node{
			Path: executable, Args: append(args, "--cpu="+strconv.Itoa(cpu)), Env: []string{"GOMAXPROCS=1", "GOGC=400"}, Stderr: r.Err,
		}
	}
	l, err := lab.Start(ctx, lab.Config{Server: node(1, argPeer), Client: node(0, argArm, "--arm="+arms[arm])})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, step := range []func(context.Context, *lab.Lab, int) error{e.transmit, e.receive, e.echo} {
		if err := step(ctx, l, arm); err != nil {
			return err
		}
	}
	return nil
}

// transmit sends to a peer that counts.
func (e *experiment) transmit(ctx context.Context, l *lab.Lab, arm int) error {
	if err := l.Server.Call(ctx, "drop", nil, nil); err != nil {
		return err
	}
	var sent, arrived uint64
	for _, m := range []struct{ at, burst int }{{sendOne, 1}, {sendBurst, 32}} {
		var c counted
		if err := l.Client.Call(ctx, "transmit", transmitRequest{m.burst, e.span}, &c); err != nil {
			return err
		}
		e.add(arm, m.at, c.PerS)
		sent += c.Total
	}
	if err := l.Server.Call(ctx, "count", nil, &arrived); err != nil {
		return err
	}
	if arrived > sent || arrived == 0 {
		return fmt.Errorf("%d packets were sent, and %d came", sent, arrived)
	}
	e.lost[arm] += sent - arrived
	return nil
}

// receive has the peer send as fast as it can, to who spins and to who sleeps.
func (e *experiment) receive(ctx context.Context, l *lab.Lab, arm int) error {
	if err := l.Server.Call(ctx, "flood", nil, nil); err != nil {
		return err
	}
	for _, m := range []struct {
		at    int
		sleep bool
	}{{receiveSpin, false}, {receiveSleep, true}} {
		var c counted
		if err := l.Client.Call(ctx, "receive", receptionRequest{e.Look, m.sleep, e.span}, &c); err != nil {
			return err
		}
		e.add(arm, m.at, c.PerS)
	}
	return l.Server.Call(ctx, "quiet", nil, nil)
}

// echo bounces packets: many that are then taken at once, and single ones.
func (e *experiment) echo(ctx context.Context, l *lab.Lab, arm int) error {
	if err := l.Server.Call(ctx, "echo", nil, nil); err != nil {
		return err
	}
	var many collected
	if err := l.Client.Call(ctx, "collect", e.span, &many); err != nil {
		return err
	}
	e.add(arm, collect, many.NsP50)
	e.lost[arm] += many.Lost
	for _, m := range []struct {
		p50, p99 int
		sleep    bool
	}{{echoSpinP50, echoSpinP99, false}, {echoSleepP50, echoSleepP99, true}} {
		var c echoed
		if err := l.Client.Call(ctx, "echo", receptionRequest{0, m.sleep, e.span}, &c); err != nil {
			return err
		}
		e.add(arm, m.p50, float64(c.NsP50))
		e.add(arm, m.p99, float64(c.NsP99))
		e.lost[arm] += c.Lost
	}
	return nil
}

func (e *experiment) add(arm, at int, figure float64) {
	e.got[arm][at] = append(e.got[arm][at], figure)
}
