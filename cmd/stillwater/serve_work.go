package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// methodWork is the method whose service time the server draws.
const methodWork = "work"

// work is what the method work does: "spin:exponential:10us". The zero value is no such method.
type work struct {
	kind string // spin or sleep
	time workload.ServiceTime
}

// String is what Set reads.
func (w *work) String() string {
	if w.kind == "" {
		return ""
	}
	return w.kind + ":" + w.time.String()
}

// Type names the value in help.
func (w *work) Type() string { return "kind:shape:mean" }

// Set reads kind:shape:mean.
func (w *work) Set(text string) error {
	kind, distribution, found := strings.Cut(text, ":")
	if !found || kind != target.MethodSpin && kind != target.MethodSleep {
		return errors.New("write spin or sleep, then a distribution: spin:exponential:10us")
	}
	if err := w.time.Set(distribution); err != nil {
		return err
	}
	w.kind = kind
	return nil
}

// handler draws a service time for each request, in order of their start, and echoes the payload after it.
func (w *work) handler(seed uint64) sw.Handler {
	do := workload.Spin
	if w.kind == target.MethodSleep {
		do = workload.Sleep
	}
	d := &drawer{time: w.time, rand: workload.ServiceRand(seed)}
	return func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		do(d.draw())
		return append(reply, req.Payload...), nil
	}
}

// drawer shares one sequence of service times among the workers.
type drawer struct {
	time workload.ServiceTime
	mu   sync.Mutex
	rand *rand.Rand
}

func (d *drawer) draw() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.time.Sample(d.rand)
}
