//go:build linux

package xsk_test

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// BenchmarkOneWay sends 64-byte packets in bursts of 32 from one goroutine to another that receives and releases. An
// operation is one packet that arrived; the share that was lost on the way (veth's ring has 256 places) is reported.
func BenchmarkOneWay(b *testing.B) {
	pair := labtest.NewPair(b, lab.PairConfig{})
	from, to := newSide(b, pair.A, xsk.Config{}), newSide(b, pair.B, xsk.Config{})
	var sent atomic.Uint64
	var stop atomic.Bool
	done := make(chan error)
	go func() {
		var err error
		for !stop.Load() && err == nil {
			for range 32 {
				if !from.Send(b, pair.B, 0, 22) {
					break
				}
				sent.Add(1)
			}
			err = from.Queue.Kick()
			runtime.Gosched()
		}
		for from.Queue.Outstanding() > 0 && err == nil {
			err = from.Queue.Kick()
		}
		done <- err
	}()
	batch := make([]frame.Desc, 64)
	b.ResetTimer()
	start, sentBefore := time.Now(), sent.Load()
	for got, idle := 0, 0; got < b.N; {
		n := to.Queue.Receive(batch)
		to.Queue.Release(batch[:n])
		got += n
		if idle++; n > 0 || idle == 64 {
			idle = 0
			runtime.Gosched()
		}
	}
	elapsed := time.Since(start)
	b.StopTimer()
	total := sent.Load() - sentBefore
	stop.Store(true)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/elapsed.Seconds()/1e6, "Mpps")
	b.ReportMetric(1-min(1, float64(b.N)/float64(total)), "lost/packet")
}

// BenchmarkRoundTrip bounces one 64-byte packet between two spinning ends and reports the quantiles of the time that it takes.
func BenchmarkRoundTrip(b *testing.B) {
	pair := labtest.NewPair(b, lab.PairConfig{})
	client, server := newSide(b, pair.A, xsk.Config{}), newSide(b, pair.B, xsk.Config{})
	var stop atomic.Bool
	done := make(chan error)
	go func() {
		var err error
		batch := make([]frame.Desc, 64)
		for idle := 0; !stop.Load() && err == nil; idle++ {
			if n := server.Queue.Receive(batch); n > 0 {
				for _, desc := range batch[:n] {
					server.Send(b, pair.A, server.Number(desc), 22)
				}
				server.Queue.Release(batch[:n])
				err = server.Queue.Kick()
			}
			if idle%64 == 0 {
				runtime.Gosched()
			}
		}
		for deadline := time.Now().Add(patience); server.Queue.Outstanding() > 0 && err == nil; {
			if err = server.Queue.Kick(); time.Now().After(deadline) {
				err = errors.New("the kernel keeps frames")
			}
		}
		done <- err
	}()
	batch := make([]frame.Desc, 64)
	times := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for i := range b.N {
		start := time.Now()
		client.Send(b, pair.B, uint64(i), 22)
		if err := client.Queue.Kick(); err != nil {
			b.Fatal(err)
		}
		for idle := 1; ; idle++ {
			if n := client.Queue.Receive(batch); n > 0 {
				client.Queue.Release(batch[:n])
				break
			}
			if idle%64 == 0 {
				runtime.Gosched()
			}
		}
		times = append(times, time.Since(start))
	}
	b.StopTimer()
	stop.Store(true)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2])/1e3, "p50-us")
	b.ReportMetric(float64(times[len(times)*99/100])/1e3, "p99-us")
	client.Drain(b)
}
