package client

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/transcript"
)

// TestTranscripts plays stories of a breaker, and of calls that fail.
func TestTranscripts(t *testing.T) {
	transcript.Play(t, func(t *testing.T) func([]string) string {
		return (&stage{t: t, now: clock.Time(time.Second), guard: NewGuard(GuardConfig{}), calls: map[string]*Attempts{}, permits: map[string]Permit{}}).run
	})
}

// stage is one client of one server.
type stage struct {
	t       *testing.T
	now     clock.Time
	guard   *Guard
	breaker Breaker
	calls   map[string]*Attempts
	permits map[string]Permit
}

// draw is the random number of all stories: the middle.
const draw = 0.5

// run plays one command: a verb, names, and settings like wait=1s.
func (s *stage) run(fields []string) string {
	set := settings{s.t, map[string]string{}}
	var names []string
	for _, f := range fields[1:] {
		if key, value, found := strings.Cut(f, "="); found {
			set.values[key] = value
		} else {
			names = append(names, f)
		}
	}
	switch fields[0] {
	case "pass":
		d, err := time.ParseDuration(names[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.now = s.now.Add(d)
		return "now " + time.Duration(s.now).String()
	case "breaker":
		s.breaker = NewBreaker(set.breaker())
		return s.breaker.State().String()
	case "allow", "report":
		return s.runBreaker(fields[0], names)
	case "guard":
		s.guard = NewGuard(GuardConfig{
			Retry: RetryConfig{
				Attempts: set.number("attempts"), Timeout: set.duration("timeout"), Refused: set.values["refused"] != "", Off: set.values["off"] != "",
				Budget: BudgetConfig{Ratio: set.share("ratio"), Floor: set.share("floor"), Burst: set.number("burst")},
			},
			Hedge: HedgeConfig{Percentile: set.share("hedge")}, Breaker: set.breaker(), Throttle: ThrottleConfig{K: set.share("k")},
		})
		return s.budget()
	case "answers": // of other calls, so that the hedge knows what is usual
		for range set.number("count") {
			s.guard.hedge.Sample(set.duration("latency"))
		}
		return ""
	default:
		return s.runCall(fields[0], names, set)
	}
}

func (s *stage) runBreaker(verb string, names []string) string {
	if verb == "allow" {
		p, ok := s.breaker.Allow(s.now)
		if !ok {
			return "refused, " + s.breaker.State().String()
		}
		s.permits[names[0]] = p
		return "allowed, " + s.breaker.State().String()
	}
	s.breaker.Report(s.now, s.permits[names[0]], map[string]Report{"success": ReportSuccess, "failure": ReportFailure, "nothing": ReportNothing}[names[1]], draw)
	return s.breaker.State().String()
}

func (s *stage) runCall(verb string, names []string, set settings) string {
	a := s.calls[names[0]]
	if a == nil {
		a = &Attempts{}
		s.calls[names[0]] = a
	}
	which := Primary
	if len(names) > 1 && names[1] == "hedge" {
		which = Hedged
	}
	switch verb {
	case "begin":
		deadline := clock.Time(0)
		if d := set.duration("deadline"); d > 0 {
			deadline = s.now.Add(d)
		}
		a.Begin(s.guard, CallClass{Repeatable: set.values["repeatable"] != "", Deadline: deadline, Left: uint8(set.number("left"))})
		why := a.Admit(s.guard, s.now, draw)
		return fmt.Sprintf("attempt %d, left %d, refusal %d; %s", a.Number(Primary), a.Left(), why, s.budget())
	case "admit":
		return fmt.Sprintf("attempt %d, refusal %d", a.Number(Primary), a.Admit(s.guard, s.now, draw))
	case "sent":
		a.Sent(s.guard, which)
		d, hedges := a.HedgeDelay(s.guard)
		return fmt.Sprintf("hedge %v after %v, time-out %v", hedges, d.Round(time.Microsecond), a.Timeout(s.guard))
	case "hedge":
		return fmt.Sprintf("%v; %s", a.Hedge(s.guard, s.now), s.budget())
	case "late":
		return fmt.Sprintf("another one instead: %v; %s", a.TimedOut(s.guard, s.now, draw), s.budget())
	case "drop":
		a.Drop(s.guard, s.now, which, set.duration("after"))
		return s.budget()
	}
	for end, name := range endNames {
		if name != verb {
			continue
		}
		what, wait := a.Ended(s.guard, s.now, which, Ended{
			End: End(end), DoNotRetry: set.values["do-not-retry"] != "", RetryAfter: set.duration("retry-after"), Latency: set.duration("latency"),
		}, draw)
		return fmt.Sprintf("%s; %s", [...]string{"finish", "await the other", "retry after " + wait.String()}[what], s.budget())
	}
	s.t.Fatalf("no such command: %s", verb)
	return ""
}

func (s *stage) budget() string {
	return fmt.Sprintf("budget %.2f", float64(s.guard.Budget().Balance)/attemptUnits)
}

// settings are those of a command.
type settings struct {
	t      *testing.T
	values map[string]string
}

func (s settings) breaker() BreakerConfig {
	return BreakerConfig{Failures: s.share("failures"), Calls: s.number("calls"), Window: s.duration("window"), Wait: s.duration("wait"),
		WaitMax: s.duration("wait-max"), Probes: s.number("probes")}
}

func (s settings) duration(key string) (d time.Duration) {
	if text, set := s.values[key]; set {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			s.t.Fatal(err)
		}
	}
	return d
}

func (s settings) share(key string) (x float64) {
	if text, set := s.values[key]; set {
		var err error
		if x, err = strconv.ParseFloat(text, 64); err != nil {
			s.t.Fatal(err)
		}
	}
	return x
}

func (s settings) number(key string) int { return int(s.share(key)) }
