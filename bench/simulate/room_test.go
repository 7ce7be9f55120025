package simulate

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/hw/report"
)

func TestAvailable(t *testing.T) {
	for _, tt := range []struct {
		name  string
		facts report.Machine
		want  int64
	}{
		{"what the machine has left", report.Machine{MemoryAvailableBytes: 16 << 30, GOMEMLIMITBytes: math.MaxInt64}, 16 << 30},
		{"GOMEMLIMIT", report.Machine{MemoryAvailableBytes: 16 << 30, GOMEMLIMITBytes: 1 << 30}, 1 << 30},
		{"unknown", report.Machine{GOMEMLIMITBytes: math.MaxInt64}, availableUnknown},
		{"unknown, GOMEMLIMIT", report.Machine{GOMEMLIMITBytes: 1 << 30}, 1 << 30},
	} {
		if got := available(tt.facts); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Two that have room together do not wait; a third waits for one of them, and one that is larger than all there is for all. Who no longer wants to wait gets nothing.
func TestRoomIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		type taker struct {
			give   func()
			err    error
			cancel func()
		}
		ask := func(bytes int64) *taker {
			ctx, cancel := context.WithCancel(t.Context())
			k := &taker{cancel: cancel}
			go func() { k.give, k.err = r.take(ctx, bytes) }()
			synctest.Wait()
			return k
		}
		has := func(k *taker, want bool) {
			t.Helper()
			if synctest.Wait(); (k.give != nil) != want {
				t.Fatalf("it has room: %v, want %v (%v)", k.give != nil, want, k.err)
			}
		}
		six, four := ask(6), ask(4)
		has(six, true)
		has(four, true)
		one, all := ask(1), ask(1000)
		has(one, false)
		six.give()
		has(one, true)
		has(all, false)
		four.give()
		has(all, false)
		one.give()
		has(all, true)
		late := ask(1)
		has(late, false)
		late.cancel()
		if has(late, false); !errors.Is(late.err, context.Canceled) {
			t.Errorf("cancelled: %v", late.err)
		}
		all.give()
		whole := ask(10)
		has(whole, true)
		whole.give()
		for _, k := range []*taker{six, four, one, all, whole} {
			k.cancel()
		}
	})
}

func TestRunsWaitForRoom(t *testing.T) {
	before, r := shared, newRoom(1)
	shared = func() *room { return r }
	defer func() { shared = before }()
	synctest.Test(t, func(t *testing.T) {
		give, err := r.take(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		var result *Result
		go func() { result, err = Run(t.Context(), small(baseline.Stillwater, 1)) }()
		if synctest.Wait(); result != nil || err != nil {
			t.Fatalf("it ran without room: %v", err)
		}
		give()
		if synctest.Wait(); result == nil {
			t.Errorf("it did not run: %v", err)
		}
	})
}

// What a run is said to hold is more than it does, and not by far.
func TestMemoryOfARun(t *testing.T) {
	for _, tt := range []struct {
		scheme  string
		threads bool
		clients int
	}{{baseline.None, true, 1000}, {baseline.None, false, 1000}, {baseline.Window, true, 100}, {baseline.Stillwater, true, 1000}, {baseline.DAGOR, true, 1000}} {
		s := small(tt.scheme, 4)
		s.Server.Threads, s.Clients = tt.threads, tt.clients
		s.Warmup, s.Measure = Duration(10*time.Millisecond), Duration(10*time.Millisecond)
		var before, after runtime.MemStats
		runtime.GC() // twice: what lies in a pool survives the first
		runtime.GC()
		runtime.ReadMemStats(&before)
		p, err := prepare(s.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		if err := Advance(t.Context(), p.world, p.begin()+time.Duration(p.Measure)); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		holds, said := int64(after.HeapAlloc)-int64(before.HeapAlloc), s.memory()
		if said < holds || said > 2*worldBytes+8*holds {
			t.Errorf("%+v: it holds %d MiB, and is said to hold %d", tt, holds>>20, said>>20)
		}
		runtime.KeepAlive(p)
	}
}

func TestUnanswered(t *testing.T) {
	s := Scenario{Service: workload.ServiceTime{Shape: workload.Constant, Mean: 10 * time.Microsecond}, Measure: Duration(3 * time.Second), Warmup: Duration(time.Second), Demand: []Step{
		{PerS: 100}, {At: Duration(time.Second), PerS: 0}, {At: Duration(2 * time.Second), PerS: 1e6}, {At: Duration(4 * time.Second), PerS: 1e9},
	}}
	capacity := s.Capacity()
	s.Demand[0].PerS = capacity + 1000
	if got := s.unanswered(); math.Abs(got-(2*(capacity+1000)-capacity+1e6)) > 1 { // of two seconds; a second without any; and one of the next, which the end cuts short
		t.Errorf("%v wait", got)
	}
	s.Demand = []Step{{PerS: s.Capacity() / 2}}
	if got := s.unanswered(); got != 0 {
		t.Errorf("%v wait at half the capacity", got)
	}
}
