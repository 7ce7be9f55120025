package admit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

var stepNames = map[Step]string{Run: "run", Wait: "wait", Refused: "refused"}

// story runs a gate by lines of "time event name", and writes what comes of each.
func story(t *testing.T, g *Gate, text string) string {
	t.Helper()
	var out strings.Builder
	tickets := map[string]*Ticket{}
	for line := range strings.Lines(text) {
		var d time.Duration
		var event, name string
		line = strings.TrimSpace(line)
		if _, err := fmt.Sscan(line, newDuration(&d), &event, &name); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		now := at(d)
		tk := tickets[name]
		if tk == nil {
			tk = &Ticket{Value: name}
			tickets[name] = tk
		}
		fmt.Fprintf(&out, "%s:", line)
		switch event {
		case "arrives":
			step, v := g.Arrive(now, tk, Arrival{})
			fmt.Fprintf(&out, " %s", stepNames[step])
			if !v.OK {
				fmt.Fprintf(&out, " (%s)", v.Reason)
			}
		case "done":
			if !g.Done(now, tk, true) {
				out.WriteString(" no")
			}
		case "leaves":
			if !g.Leave(tk) {
				out.WriteString(" no")
			}
		}
		for {
			next, step, v := g.Next(now)
			if next == nil {
				break
			}
			fmt.Fprintf(&out, " %v %s", next.Value, stepNames[step])
			if !v.OK {
				fmt.Fprintf(&out, " (%s)", v.Reason)
			}
		}
		out.WriteByte('\n')
		if err := g.Audit(); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return out.String()
}

// scanned reads a duration with Sscan.
type scanned struct{ d *time.Duration }

func newDuration(d *time.Duration) fmt.Scanner { return scanned{d} }

func (s scanned) Scan(state fmt.ScanState, _ rune) error {
	token, err := state.Token(true, nil)
	if err == nil {
		*s.d, err = time.ParseDuration(string(token))
	}
	return err
}

func TestGateStories(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  GateConfig
		text string
	}{
		{"first come, first served", GateConfig{Permits: 1, Door: DoorConfig{Target: time.Second}}, `
			0s arrives A: run
			1ms arrives B: wait
			2ms arrives C: wait
			10ms done A: B run
			10ms done A: no
			10ms done C: no
			12ms leaves B: no
			20ms done B: C run
			30ms done C:`},
		{"newest first while the oldest is old, and expiry of the tail",
			GateConfig{Permits: 1, Door: DoorConfig{Target: time.Second}, Order: OrderConfig{NewestFirst: 5 * ms}}, `
			0s arrives A: run
			1ms arrives B: wait
			2ms arrives C: wait
			9ms arrives D: wait
			10ms done A: D run
			18ms done D: C run
			21ms arrives E: wait
			22ms tick E: B refused (waited too long)
			22ms done C: E run`},
		{"a bound in time", GateConfig{Permits: 1, Door: DoorConfig{Target: 40 * ms}}, `
			0s arrives A: run
			1ms arrives B: wait
			81ms arrives C: wait
			82ms arrives D: refused (overloaded)
			101ms tick B:
			102ms tick B: B refused (waited too long)
			102ms leaves B: no
			103ms leaves C:
			103ms done A:`},
		{"a bound in number", GateConfig{Permits: 1, Waiting: 1, Door: DoorConfig{Target: time.Second}}, `
			0s arrives A: run
			0s arrives B: wait
			0s arrives B: refused (queue full)
			0s arrives C: refused (queue full)
			1ms done A: B run`},
		{"two permits", GateConfig{Permits: 2, Door: DoorConfig{Target: time.Second}}, `
			0s arrives A: run
			0s arrives B: run
			0s arrives C: wait
			0s arrives D: wait
			1ms done B: C run
			1ms done A: D run`},
	} {
		var events []string
		var want strings.Builder
		for line := range strings.Lines(c.text) {
			if line = strings.TrimSpace(line); line != "" {
				event, _, _ := strings.Cut(line, ":")
				events = append(events, event)
				want.WriteString(line + "\n")
			}
		}
		if got := story(t, NewGate(c.cfg), strings.Join(events, "\n")); got != want.String() {
			t.Errorf("%s:\n%s", c.name, got)
		}
	}
}

// TestGateLearns: once it knows how long requests take, it refuses by the work that is queued, before anybody is old.
func TestGateLearns(t *testing.T) {
	g := NewGate(GateConfig{Permits: 1, Door: DoorConfig{Target: 40 * us}})
	one := &Ticket{}
	now := at(0)
	for range 1000 {
		if step, _ := g.Arrive(now, one, Arrival{}); step != Run {
			t.Fatal("an idle gate does not run it")
		}
		now = now.Add(10 * us)
		g.Done(now, one, true)
	}
	runs, waits := 0, 0
	for {
		step, v := g.Arrive(now, &Ticket{}, Arrival{})
		if step == Run {
			runs++
		} else if step == Wait {
			waits++
		} else if v.Reason != ReasonOverloaded || v.Advice != AdviceDoNotRetry || v.RetryAfter <= 0 {
			t.Fatalf("%+v", v)
		} else {
			break
		}
	}
	if runs != 1 || waits != 9 { // up to 80 us, the first above it, and the one that runs
		t.Errorf("%d run and %d wait", runs, waits)
	}
	if p := g.Pressure(now); p < 2.2 || p > 2.3 {
		t.Errorf("pressure %v", p)
	}
	late := Arrival{Deadline: now.Add(100 * us), Level: CriticalPlus}
	if step, v := g.Arrive(now, &Ticket{}, late); step != Refused || v.Reason != ReasonExpired {
		t.Errorf("%v %+v: 90 us of work stand before 10 us, with 100 us left: no room for a tail", step, v)
	}
	if err := g.Audit(); err != nil {
		t.Error(err)
	}
}

// TestGateTakesNothingOfWhatItRefuses: a full queue gives the tokens back.
func TestGateTakesNothingOfWhatItRefuses(t *testing.T) {
	g := NewGate(GateConfig{Permits: 1, Waiting: 1, Door: DoorConfig{Target: time.Second}})
	m := NewMethod(MethodConfig{Rate: 1, Burst: 10})
	for range 100 {
		g.Arrive(at(0), &Ticket{}, Arrival{Method: &m})
	}
	if left := m.Bucket.parts / tokenParts; left != 8 {
		t.Errorf("%d tokens are left of 10, and two were let in", left)
	}
}

// gateTwin keeps a slice, and looks at all of it.
type gateTwin struct {
	permits, waiting int
	maxWait          time.Duration
	running          map[*Ticket]bool
	line             []*Ticket
	since            map[*Ticket]clock.Time
}

func (g *gateTwin) next(now clock.Time) (*Ticket, Step) {
	for _, t := range g.line {
		if now.Sub(g.since[t]) > g.maxWait {
			g.leave(t)
			return t, Refused
		}
	}
	if len(g.running) < g.permits && len(g.line) > 0 {
		t := g.line[0]
		g.leave(t)
		g.running[t] = true
		return t, Run
	}
	return nil, Wait
}

func (g *gateTwin) leave(t *Ticket) bool {
	i := slices.Index(g.line, t)
	if i < 0 {
		return false
	}
	g.line = slices.Delete(g.line, i, i+1)
	return true
}

// TestGateTwin compares every step of random callers, who also give back twice, leave when they do not wait, and arrive when they are there.
func TestGateTwin(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 100 {
		g := NewGate(GateConfig{Permits: 1 + rng.IntN(4), Waiting: 1 + rng.IntN(8), MaxWait: 5 * ms, Door: DoorConfig{Target: time.Hour}})
		twin := &gateTwin{permits: g.permits, waiting: g.waiting, maxWait: 5 * ms, running: map[*Ticket]bool{}, since: map[*Ticket]clock.Time{}}
		tickets, now := make([]Ticket, 20), at(0)
		for i := range 2000 {
			now = now.Add(time.Duration(rng.Int64N(int64(ms))))
			tk := &tickets[rng.IntN(len(tickets))]
			switch rng.IntN(5) {
			case 0, 1:
				want := Run
				switch {
				case twin.running[tk] || slices.Contains(twin.line, tk):
					want = Refused
				case len(twin.running) < twin.permits && len(twin.line) == 0:
					twin.running[tk] = true
				case len(twin.line) == twin.waiting:
					want = Refused
				default:
					want = Wait
					twin.line, twin.since[tk] = append(twin.line, tk), now
				}
				if got, _ := g.Arrive(now, tk, Arrival{}); got != want {
					t.Fatalf("step %d: %s, want %s", i, stepNames[got], stepNames[want])
				}
			case 2, 3:
				want := twin.running[tk]
				delete(twin.running, tk)
				if got := g.Done(now, tk, rng.IntN(2) == 0); got != want {
					t.Fatalf("step %d: done is %v, want %v", i, got, want)
				}
			case 4:
				if got, want := g.Leave(tk), twin.leave(tk); got != want {
					t.Fatalf("step %d: left is %v, want %v", i, got, want)
				}
			}
			if due := g.Deadline(); (due == 0) != (len(twin.line) == 0) || due != 0 && due != twin.since[twin.line[0]].Add(5*ms+1) {
				t.Fatalf("step %d: asked again at %v", i, due)
			}
			for {
				got, step, _ := g.Next(now)
				want, wantStep := twin.next(now)
				if got != want || got != nil && step != wantStep {
					t.Fatalf("step %d: next is %v %v, want %v %v", i, got, step, want, wantStep)
				}
				if got == nil {
					break
				}
			}
			if err := g.Audit(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
	}
}

func TestGateAllocatesNothing(t *testing.T) {
	g, now := NewGate(GateConfig{Permits: 2, Door: DoorConfig{Target: time.Second}}), at(0)
	tickets := make([]Ticket, 4)
	if n := testing.AllocsPerRun(2000, func() {
		now = now.Add(10 * us)
		for i := range tickets {
			g.Arrive(now, &tickets[i], Arrival{})
		}
		for range 3 {
			for i := range tickets {
				g.Done(now, &tickets[i], true)
			}
			for next, _, _ := g.Next(now); next != nil; next, _, _ = g.Next(now) {
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGate(b *testing.B) {
	g, now, tk := NewGate(GateConfig{Permits: 2}), at(0), &Ticket{}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(us)
		g.Arrive(now, tk, Arrival{})
		now = now.Add(us)
		g.Done(now, tk, true)
		g.Next(now)
	}
}
