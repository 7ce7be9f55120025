package credit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/transcript"
)

// TestTranscripts plays stories of one server and its clients.
func TestTranscripts(t *testing.T) {
	transcript.Play(t, func(t *testing.T) func([]string) string {
		return (&stage{t: t, now: clock.Time(time.Second), clients: map[string]*actor{}}).run
	})
}

// stage is a server, its clients, and the packets between them, which arrive when the story says so.
type stage struct {
	t       *testing.T
	now     clock.Time
	ledger  *Ledger
	clients map[string]*actor
	packets []letter
}

// actor is a client: the session that the server has for it, and its own gate.
type actor struct {
	name        string
	session     Session
	gate        client.Gate
	outstanding int
	newest      int // highest packet of it that has arrived
}

// letter is a packet under way: to the server a request or a probe, to the client a limit.
type letter struct {
	to      *actor // nil: to the server
	from    *actor
	probe   bool
	number  uint64
	next    uint64
	seq     uint32
	demand  uint16
	limit   uint64
	answers bool
}

// verbs are the commands of a transcript.
var verbs = map[string]func(s *stage, args []string) string{
	"server":   (*stage).server,   // server workers=4 slots=4 [floor=off] [wakes=16]
	"register": (*stage).register, // register A B ... [demand=0]
	"send":     (*stage).send,     // send A [demand=0]: one request leaves, if there is a credit for it
	"probe":    (*stage).probe,    // probe A [demand=1]: a probe leaves, if one is due
	"say":      (*stage).say,      // say A [next=] [seq=] [demand=] [number=]: a client that lies; arrives at once
	"answer":   (*stage).answer,   // answer A [success|failure|expired|cancelled|rejection]
	"deliver":  (*stage).deliver,  // deliver 1 2 ...
	"lose":     (*stage).lose,     // lose 1 2 ...
	"give-up":  (*stage).giveUp,   // give-up A: no longer waits for its answers
	"wait":     (*stage).wait,     // wait 50us
	"update":   (*stage).update,   // update [delay=0s] [times=1], each after 10 us
	"wake":     (*stage).wake,     // grants to drained sessions leave
	"sweep":    (*stage).sweep,    // sweep
	"leave":    (*stage).leave,    // leave A: deregisters
	"show":     (*stage).show,     // show
}

func (s *stage) run(fields []string) string {
	verb := verbs[fields[0]]
	if verb == nil {
		s.t.Fatalf("no command %q", fields[0])
	}
	out := verb(s, fields[1:])
	if s.ledger != nil {
		if err := s.ledger.Audit(); err != nil {
			s.t.Fatal(err)
		}
	}
	return out
}

// value finds key=value among the arguments.
func value(args []string, key, otherwise string) string {
	for _, arg := range args {
		if rest, ok := strings.CutPrefix(arg, key+"="); ok {
			return rest
		}
	}
	return otherwise
}

func (s *stage) number(args []string, key string, otherwise uint64) uint64 {
	text := value(args, key, "")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *stage) actor(args []string) *actor {
	a := s.clients[args[0]]
	if a == nil {
		s.t.Fatalf("no client %q", args[0])
	}
	return a
}

// post puts a packet under way and says so.
func (s *stage) post(l letter) string {
	s.packets = append(s.packets, l)
	text := fmt.Sprintf("packet %d: ", len(s.packets))
	switch {
	case l.to != nil:
		return text + fmt.Sprintf("limit %d seq %d to %s\n", l.limit, l.seq, l.to.name)
	case l.probe:
		return text + fmt.Sprintf("probe of %s, next %d seq %d demand %d\n", l.from.name, l.next, l.seq, l.demand)
	default:
		return text + fmt.Sprintf("request %d of %s, next %d seq %d demand %d\n",
			l.number, l.from.name, l.next, l.seq, l.demand)
	}
}

func (s *stage) server(args []string) string {
	slots := int(s.number(args, "slots", 0))
	law := BreakwaterConfig{
		Workers:   int(s.number(args, "workers", 1)),
		Slots:     slots,
		NoFloor:   value(args, "floor", "on") == "off",
		Uninvited: value(args, "invite", "off") == "off",
	}
	config := Config{Slots: slots, DrainedPerUpdate: int(s.number(args, "wakes", 0)), Checked: true}
	s.ledger = NewLedger(config, NewBreakwater(law))
	return ""
}

func (s *stage) register(args []string) string {
	demand := uint16(s.number(args, "demand", 0))
	for _, name := range args {
		if strings.Contains(name, "=") {
			continue
		}
		session, err := s.ledger.Register(s.now)
		if err != nil {
			return err.Error()
		}
		a := &actor{name: name, session: session, gate: client.NewGate(0), outstanding: 1}
		s.clients[name] = a
		number := a.gate.Take()
		s.ledger.Heard(s.now, session, a.gate.Next(), a.gate.Seq(), demand, true)
		if !s.ledger.Arrive(s.now, session, number) {
			return "refused"
		}
	}
	return ""
}

func (s *stage) send(args []string) string {
	a := s.actor(args)
	a.gate.Expire(s.now)
	if !a.gate.CanSend() {
		return "no credit"
	}
	number := a.gate.Take()
	a.outstanding++
	return s.post(letter{from: a, number: number, next: a.gate.Next(), seq: a.gate.Seq(),
		demand: uint16(s.number(args, "demand", 0))})
}

func (s *stage) probe(args []string) string {
	a := s.actor(args)
	a.gate.Expire(s.now)
	demand := s.number(args, "demand", 1)
	if !a.gate.ProbeDue(s.now, int(demand), a.outstanding) {
		return fmt.Sprintf("not due, next in %v", a.gate.NextProbe().Sub(s.now))
	}
	return s.post(letter{from: a, probe: true, next: a.gate.Next(), seq: a.gate.Seq(), demand: uint16(demand)})
}

func (s *stage) say(args []string) string {
	a := s.actor(args)
	next := s.number(args, "next", a.gate.Next())
	seq := uint32(s.number(args, "seq", uint64(a.gate.Seq())))
	s.ledger.Heard(s.now, a.session, next, seq, uint16(s.number(args, "demand", 0)), true)
	if value(args, "number", "") == "" {
		return s.line(a)
	}
	return s.arrive(a, s.number(args, "number", 0))
}

func (s *stage) arrive(a *actor, number uint64) string {
	verdict := "let in"
	if !s.ledger.Arrive(s.now, a.session, number) {
		limit, seq := s.ledger.Limit(a.session)
		verdict = fmt.Sprintf("refused, told limit %d seq %d", limit, seq)
	}
	return fmt.Sprintf("request %d of %s %s\n%s", number, a.name, verdict, s.line(a))
}

func (s *stage) answer(args []string) string {
	kind := Success
	if len(args) > 1 {
		kind = Kind(slices.Index([]string{"success", "failure", "expired", "cancelled", "rejection"}, args[1]))
	}
	a := s.actor(args)
	limit, seq := s.ledger.Answer(s.now, a.session, kind)
	return s.post(letter{to: a, limit: limit, seq: seq, answers: true}) + s.line(a)
}

func (s *stage) deliver(args []string) string {
	out := ""
	for _, arg := range args {
		n, err := strconv.Atoi(arg)
		if err != nil || n > len(s.packets) {
			return "no packet " + arg
		}
		out += s.receive(n)
	}
	return out
}

func (s *stage) receive(n int) string {
	l := s.packets[n-1]
	if a := l.to; a != nil {
		verdict := "applies"
		if !a.gate.Apply(s.now, l.limit, l.seq) {
			verdict = "ignores"
		}
		if l.answers {
			a.outstanding = max(a.outstanding-1, 0)
		}
		return fmt.Sprintf("%s %s limit %d seq %d: may send %d\n", a.name, verdict, l.limit, l.seq, a.gate.Unused())
	}
	newer := n > l.from.newest
	l.from.newest = max(l.from.newest, n)
	if !l.probe {
		s.ledger.Heard(s.now, l.from.session, l.next, l.seq, l.demand, newer)
		return s.arrive(l.from, l.number)
	}
	limit, seq, answered := s.ledger.Probe(s.now, l.from.session, l.next, l.seq, l.demand, newer)
	if answered {
		return s.post(letter{to: l.from, limit: limit, seq: seq}) + s.line(l.from)
	}
	return "listed as drained\n" + s.line(l.from)
}

func (s *stage) lose([]string) string { return "" }

func (s *stage) giveUp(args []string) string {
	s.actor(args).outstanding = 0
	return ""
}

func (s *stage) wait(args []string) string {
	s.now = s.now.Add(s.duration(args[0]))
	return ""
}

func (s *stage) update(args []string) string {
	for range s.number(args, "times", 1) {
		s.now = s.now.Add(periodMin)
		s.ledger.Update(s.now, Signal{Delay: s.duration(value(args, "delay", "0s"))})
	}
	return s.sums()
}

func (s *stage) wake([]string) string {
	out := ""
	for session, limit, seq, ok := s.ledger.PopDrained(s.now); ok; session, limit, seq, ok = s.ledger.PopDrained(s.now) {
		for _, a := range s.clients {
			if a.session == session {
				out += s.post(letter{to: a, limit: limit, seq: seq})
			}
		}
	}
	if out == "" {
		return "nobody"
	}
	return out
}

func (s *stage) sweep([]string) string {
	return fmt.Sprintf("%d lapsed\n%s", s.ledger.Sweep(s.now, 1<<20), s.sums())
}

func (s *stage) leave(args []string) string {
	a := s.actor(args)
	s.ledger.Deregister(s.now, a.session)
	delete(s.clients, a.name)
	return s.sums()
}

func (s *stage) show([]string) string {
	names := make([]string, 0, len(s.clients))
	for name := range s.clients {
		names = append(names, name)
	}
	slices.Sort(names)
	out := ""
	for _, name := range names {
		out += s.line(s.clients[name])
	}
	return out + s.sums()
}

// line is what the server knows of one session.
func (s *stage) line(a *actor) string {
	e := s.ledger.at(a.session)
	text := fmt.Sprintf("%s: limit %d seq %d, sent %d, unused %d + pending %d = window %d, demand %d",
		a.name, e.limit, e.seq, e.sent, e.unused(), e.pending, e.window(), e.demand)
	if e.oldOver > 0 {
		text += fmt.Sprintf(", may believe in %d", e.limit+uint64(e.oldOver))
	}
	if e.is(flagListed) {
		text += ", drained"
	}
	if e.is(flagLapsed) {
		text += ", lapsed"
	}
	return text + "\n"
}

func (s *stage) sums() string {
	x := s.ledger.Totals()
	return fmt.Sprintf("pool %d, issued %d, pending %d, sessions %d of %d, drained %d\n",
		x.Pool, x.Issued, x.Pending, x.Active, x.Registered, x.Drained)
}
