package simulate

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

func TestAvailable(t *testing.T) {
	meminfo := &fstest.MapFile{Data: []byte("MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:   16000000 kB\n")}
	group := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, tt := range []struct {
		name  string
		root  fstest.MapFS
		limit int64
		want  int64
	}{
		{"the machine", fstest.MapFS{"proc/meminfo": meminfo}, math.MaxInt64, 16_000_000 << 10},
		{"no group limit", fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": group("max\n")}, math.MaxInt64, 16_000_000 << 10},
		{"a container", fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": group("2147483648\n")}, math.MaxInt64, 2 << 30},
		{"GOMEMLIMIT", fstest.MapFS{"proc/meminfo": meminfo}, 1 << 30, 1 << 30},
		{"nothing is known", fstest.MapFS{}, math.MaxInt64, availableUnknown},
		{"nonsense", fstest.MapFS{"proc/meminfo": group("MemAvailable: many kB\n")}, math.MaxInt64, availableUnknown},
	} {
		if got := available(tt.root, tt.limit); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Two that have room together do not wait; a third waits for one of them, and one that is larger than all there is for all.
func TestRoomIsShared(t *testing.T) {
	r := newRoom(10)
	must := func(bytes int64) func() {
		t.Helper()
		give, err := r.take(context.Background(), bytes)
		if err != nil {
			t.Fatal(err)
		}
		return give
	}
	full := func(bytes int64) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := r.take(ctx, bytes); !errors.Is(err, context.Canceled) {
			t.Fatalf("%d bytes more: %v", bytes, err)
		}
	}
	one, two := must(6), must(4)
	full(1)
	one()
	full(7)
	three := must(6)
	three()
	two()
	all := must(1000)
	full(1)
	all()
	must(10)()
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
