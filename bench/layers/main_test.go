//go:build linux

package main

import (
	"bytes"
	"context"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

func TestMain(m *testing.M) {
	children()
	os.Exit(m.Run())
}

const ms = time.Millisecond

func TestCount(t *testing.T) {
	var users []ended
	for _, due := range []time.Duration{99, 100, 150, 170, 171, 199, 200} {
		users = append(users, ended{Due: clock.Time(due * ms)})
	}
	attempts := map[uint64]uint64{1: 100, 2: 1, 3: 2, 4: 6, 5: 5, 7: 100} // the sixth made none
	var one result
	one.count(users, attempts, clock.Time(100*ms), clock.Time(200*ms), 30*ms)
	if one.Users != 5 || one.Attempts != 14.0/5 || one.Most != 6 || one.Whole != 3 || one.Deep != 3 {
		t.Errorf("%+v", one)
	}
	one = result{}
	one.count(users, attempts, clock.Time(300*ms), clock.Time(400*ms), 30*ms)
	if one.Users != 0 || one.Attempts != 0 || one.Deep != 0 {
		t.Errorf("of nothing: %+v", one)
	}
}

func TestRecover(t *testing.T) {
	s := settings{before: time.Second, limit: 100 * ms}
	trouble := trouble{from: clock.Time(time.Second), to: clock.Time(2 * time.Second)}
	var users []ended
	for due := clock.Time(0); due < clock.Time(4*time.Second); due = due.Add(10 * ms) {
		u := ended{Due: due, Finished: due.Add(ms), OK: due < trouble.from || due >= trouble.to.Add(300*ms)}
		if due >= trouble.to.Add(300*ms) && due < trouble.to.Add(500*ms) {
			u.Finished = due.Add(101 * ms) // answered, and too late
		}
		users = append(users, u)
	}
	var one result
	one.recover(users, trouble, s)
	if one.GoodBefore != 1 || one.GoodDuring != 0 || !one.Returned || one.Return != 500*ms {
		t.Errorf("%+v", one)
	}
	one.recover(users[:len(users)-150], trouble, s) // the load ends first
	if one.Returned {
		t.Errorf("%+v", one)
	}
	for i := range users {
		users[i].OK = false
	}
	one.recover(users, trouble, s)
	if one.Returned {
		t.Error("nothing came back as good as nothing")
	}
}

func TestPacketsMax(t *testing.T) {
	for _, c := range []struct {
		life time.Duration
		want float64
	}{
		{0, 2}, {100 * ms, 2}, {101 * ms, 3}, {200 * ms, 3}, {201 * ms, 4}, {301 * ms, 5}, // after 100 ms each
	} {
		if got := packetsMax(c.life); got != c.want {
			t.Errorf("%v: %v, want %v", c.life, got, c.want)
		}
	}
}

func TestBudgets(t *testing.T) {
	if got, want := budgets(1000, 10*time.Second), math.Pow(1.112, 3); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		n, low, high uint64
		want         float64
	}{{5, 5, 7, 1}, {7, 5, 7, 1}, {4, 5, 7, 0.8}, {10, 5, 7, 0.7}, {0, 0, 0, 1}} {
		if got := within(c.n, [2]uint64{c.low, c.high}); got != c.want {
			t.Errorf("%d of %d..%d: %v", c.n, c.low, c.high, got)
		}
	}
}

func TestSNMP(t *testing.T) {
	text := []byte("Ip: Forwarding NoPorts\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors\nUdp: 3 4711 5\nUdpLite: NoPorts\nUdpLite: 6\n")
	if got, err := snmp(text, "Udp:", "NoPorts"); got != 4711 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for _, bad := range []string{"", "Udp: NoPorts\n", "Udp: InDatagrams\nUdp: 1\n", "Udp: InDatagrams NoPorts\nUdp: 1\n", "Udp: NoPorts\nUdp: x\n"} {
		if got, err := snmp([]byte(bad), "Udp:", "NoPorts"); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

// What is shown, and which bounds are missed by what.
func TestBounds(t *testing.T) {
	good := func(w run) result {
		r := result{
			Trouble: w.trouble, Arm: w.arm, Users: 1000, Attempts: 1.1, Whole: 700, Deep: 1.1, Packets: 2, Sent: [2]uint64{100, 110}, Reached: 105, Arrived: 200, Left: 200,
			GoodBefore: 1, Length: 10 * time.Second, Return: time.Second, Returned: true,
		}
		if w.arm == armNone {
			r.Attempts, r.Deep = 26, 27
		}
		return r
	}
	told := cancelled{Calls: 2, Stopped: [3]int{2, 2, 2}, Told: [3]uint64{2, 2, 2}}
	for _, c := range []struct {
		name   string
		worse  func(*result, *cancelled)
		at     run
		missed string // "" = none
	}{
		{"all is well", func(*result, *cancelled) {}, run{troubleKilled, armOurs}, ""},
		{"too many attempts", func(r *result, _ *cancelled) { r.Attempts = 1.34 }, run{troubleKilled, armOurs}, "attempts a request"},
		{"too many of the whole", func(r *result, _ *cancelled) { r.Deep = 1.34 }, run{troubleHangs, armOurs}, "attempts a request"},
		{"too many packets", func(r *result, _ *cancelled) { r.Packets = 4 }, run{troubleKilled, armOurs}, "packets a request"},
		{"late", func(r *result, _ *cancelled) { r.Return = 5001 * ms }, run{troubleKilled, armOurs}, "stays whole"},
		{"never", func(r *result, _ *cancelled) { r.Returned = false }, run{troubleRefuses, armOurs}, "stays whole"},
		{"budgets that do not hold", func(r *result, _ *cancelled) { r.Attempts = 1.4 }, run{troubleUnavailable, armBudget}, "attempts a request"},
		{"no fan", func(r *result, _ *cancelled) { r.Deep = 26 }, run{troubleKilled, armNone}, "attempts a request"},
		{"hardly any fan", func(r *result, _ *cancelled) { r.Deep = 7 }, run{troubleHangs, armNone}, "attempts a request"},
		{"packets that did not arrive", func(r *result, _ *cancelled) { r.Reached = 98 }, run{troubleKilled, armNone}, "kernel counted"},
		{"packets from nowhere", func(r *result, _ *cancelled) { r.Reached = 112 }, run{troubleKilled, armOurs}, "kernel counted"},
		{"attempts that did not arrive", func(r *result, _ *cancelled) { r.Arrived = 197 }, run{troubleHangs, armNone}, "at its door"},
		{"a handler that was not told", func(_ *result, c *cancelled) { c.Stopped[1] = 1 }, run{}, "were not told"},
		{"an interruption too many", func(_ *result, c *cancelled) { c.Told[2] = 3 }, run{}, "were not told"},
	} {
		m := measured{cancelled: []cancelled{told}}
		for _, w := range runs() {
			one := good(w)
			if w == c.at || c.at == (run{}) && w == runs()[0] {
				c.worse(&one, &m.cancelled[0])
			}
			m.results = append(m.results, one)
		}
		r := prove.NewRun("layers", 1)
		if err := show(r, settings{attempt: 50 * ms}, m); err != nil {
			t.Fatal(err)
		}
		missed := r.Missed()
		if c.missed == "" && len(missed) > 0 || c.missed != "" && (len(missed) != 1 || !strings.Contains(missed[0], c.missed)) {
			t.Errorf("%s: missed %q", c.name, missed)
		}
	}
}

func TestEndings(t *testing.T) {
	at := trouble{from: clock.Time(100 * ms), to: clock.Time(200 * ms)}
	during, outside := endings([]ended{
		{Due: clock.Time(99 * ms), Finished: clock.Time(109 * ms), OK: true}, {Due: clock.Time(100 * ms), Error: "a"}, {Due: clock.Time(101 * ms), Error: "a"},
		{Due: clock.Time(199 * ms), Finished: clock.Time(210 * ms), OK: true}, {Due: clock.Time(200 * ms), Error: "b"},
	}, at, 10*ms)
	if !maps.Equal(during, map[string]int{"a": 2, "late": 1}) || !maps.Equal(outside, map[string]int{"good": 1, "b": 1}) {
		t.Errorf("%v, %v", during, outside)
	}
}

func TestChosen(t *testing.T) {
	for only, want := range map[string]int{"": len(runs()), "killed": 3, "none": 4, "hangs/defaults": 1, "hangs/budgets": 0} {
		s := settings{only: only}
		if got := len(s.chosen()); got != want {
			t.Errorf("%q: %d runs, want %d", only, got, want)
		}
	}
}

// The table has a line for each run.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	r := prove.NewRun("layers", 1)
	r.Out = &out
	if err := table(r, []result{{Trouble: troubleKilled, Arm: armOurs, Reached: 3, Sent: [2]uint64{2, 4}}, {Trouble: troubleHangs, Arm: armNone, Arrived: 7, Left: 9}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3/2..4", "7/9", "not"} {
		if !slices.Contains(strings.Fields(out.String()), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

// A run that is interrupted says so, and leaves nothing behind that the next one stumbles over.
func TestPauseEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := pause(ctx, time.Hour); err != context.Canceled {
		t.Error(err)
	}
}
