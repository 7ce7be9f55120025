package credit

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// duel drives a ledger and its twin through the same events. choose(n) picks below n: from a random source, or from the
// bytes of a fuzzer.
type duel struct {
	choose func(n int) int
	ledger *Ledger
	twin   *twin
	now    clock.Time
	live   []Session
	trace  []string
}

func newDuel(choose func(n int) int) *duel {
	slots, workers := 1+choose(8), 1+choose(8)
	lease, life := time.Duration(1+choose(100))*us, time.Duration(choose(20))*(1<<graceShift)
	noFloor := choose(2) == 0
	perWake := 1 + choose(3)
	invites, idleCounts := choose(3) > 0, choose(3) == 0
	recovery := []float64{DefaultRecovery, 1}[choose(2)]
	now := clock.Time(1 + choose(1<<30))
	return &duel{
		choose: choose,
		now:    now,
		ledger: NewLedger(
			Config{MaxSessions: 12, Slots: slots, Lease: lease, PacketLife: max(life, 1), DrainedPerUpdate: perWake,
				Checked: true},
			NewBreakwater(BreakwaterConfig{Alpha: 0.4, Beta: 0.3, Workers: workers, Slots: slots, NoFloor: noFloor, Recovery: recovery,
				Uninvited: !invites, IdleCounts: idleCounts})),
		twin: &twin{
			turns:    map[bool]map[int]int{},
			sessions: map[Session]*twinSession{}, slots: slots, lease: lease, life: max(life, 1), perWake: perWake,
			workers: float64(workers), pool: float64(workers), peak: float64(workers), recovery: recovery, alpha: 0.4, beta: 0.3, floor: !noFloor,
			invites: invites, open: openMax, idleCounts: idleCounts,
			target: DefaultTargetDelay, wakes: perWake, cursor: 1, used: 1,
		},
	}
}

func (d *duel) log(format string, args ...any) {
	d.trace = append(d.trace, fmt.Sprintf(format, args...))
}

// step makes one event happen to both, and says how they differ.
func (d *duel) step() error {
	if len(d.live) == 0 || d.choose(12) == 0 {
		return d.register()
	}
	s := d.live[d.choose(len(d.live))]
	switch d.choose(12) {
	case 0:
		if d.choose(3) == 0 {
			return d.deregister(s)
		}
	case 1:
		d.wait()
	case 2, 3:
		return d.packet(s, false)
	case 4:
		if d.choose(2) == 0 {
			return d.unasked(s)
		}
		return d.packet(s, false)
	case 5:
		return d.packet(s, true)
	case 6, 7, 8:
		return d.answer(s)
	case 9:
		return d.update()
	case 10:
		return d.pop()
	case 11:
		most := d.choose(14)
		d.log("sweep %d", most)
		if got, want := d.ledger.Sweep(d.now, most), d.twin.sweep(d.now, most); got != want {
			return fmt.Errorf("swept %d, want %d", got, want)
		}
	}
	return d.twin.compare(d.ledger)
}

// wait lets time pass, now and then a lease or the life of a packet.
func (d *duel) wait() {
	switch d.choose(4) {
	case 0:
		d.now = d.now.Add(time.Duration(d.choose(20)) * us)
	case 1:
		d.now = d.now.Add(d.ledger.config.Lease)
	default:
		if d.choose(4) == 0 {
			d.now = d.now.Add(d.ledger.config.PacketLife + 3<<graceShift)
		}
	}
	d.log("now %d", d.now)
}

func (d *duel) register() error {
	s, err := d.ledger.Register(d.now)
	d.log("register %d %v", s, err)
	if full := len(d.live) == 12; full != (err != nil) {
		return fmt.Errorf("register: %w", err)
	}
	if err == nil {
		d.twin.register(d.now, s)
		d.live = append(d.live, s)
		if weight := d.choose(6); weight > 0 { // some keep what they have
			d.log("weight %d %d", s, weight)
			d.ledger.SetWeight(s, uint8(weight))
			d.twin.sessions[s].weight = map[int]int{1: 1, 2: 2, 3: 2, 4: 4, 5: 4}[weight]
		}
	}
	return d.twin.compare(d.ledger)
}

func (d *duel) deregister(s Session) error {
	d.log("deregister %d", s)
	d.ledger.Deregister(d.now, s)
	d.twin.deregister(s)
	d.live = slices.DeleteFunc(d.live, func(x Session) bool { return x == s })
	return d.twin.compare(d.ledger)
}

// packet is a request or a probe of a client that may have missed updates, may be overtaken, and may lie.
func (d *duel) packet(s Session, probe bool) error {
	x := d.twin.sessions[s]
	next := x.sent + uint64(d.choose(4))
	if d.choose(3) == 0 {
		next = max(x.highest()+1, 4) - uint64(d.choose(4))
	}
	if d.choose(20) == 0 {
		next = math.MaxUint64 >> d.choose(3)
	}
	seq := x.seq - min(x.seq, uint32(d.choose(4))) + uint32(d.choose(15)/14)
	demand := d.choose(12)
	if demand == 11 {
		demand = math.MaxUint16
	}
	newer := d.choose(5) > 0
	if probe {
		d.log("probe %d next %d seq %d demand %d %v", s, next, seq, demand, newer)
		limit, number, answered := d.ledger.Probe(d.now, s, next, seq, uint16(demand), newer)
		want := d.twin.probe(d.now, s, next, seq, demand, newer)
		if answered != want || limit != x.told() || number != x.seq {
			return fmt.Errorf("probe: %d %d %v, want %d %d %v", limit, number, answered, x.told(), x.seq, want)
		}
		return d.twin.compare(d.ledger)
	}
	d.log("heard %d next %d seq %d demand %d %v", s, next, seq, demand, newer)
	d.ledger.Heard(d.now, s, next, seq, uint16(demand), newer)
	d.twin.heard(d.now, s, next, seq, demand, newer)
	if err := d.twin.compare(d.ledger); err != nil {
		return err
	}
	for range d.choose(3) {
		number := next - min(next, uint64(d.choose(5)))
		d.log("arrive %d number %d", s, number)
		if got, want := d.ledger.Arrive(d.now, s, number), d.twin.arrive(d.now, s, number); got != want {
			return fmt.Errorf("arrived: %v, want %v: %+v", got, want, *x)
		}
	}
	return d.twin.compare(d.ledger)
}

// unasked is a request without a credit, of a client that has lost count, or lies.
func (d *duel) unasked(s Session) error {
	x := d.twin.sessions[s]
	number := x.limit + uint64(d.choose(4)) - min(x.limit, uint64(d.choose(3)))
	if d.choose(40) == 0 {
		number = 1<<62 - 1 + uint64(d.choose(3))
	}
	open, demand, beside := d.choose(3) > 0, d.choose(3), d.choose(2)*InvitedBeside
	d.log("unasked %d number %d demand %d %v beside %d", s, number, demand, open, beside)
	d.ledger.Heard(d.now, s, 0, x.seq, uint16(demand), true)
	d.twin.heard(d.now, s, 0, x.seq, demand, true)
	if got, want := d.ledger.Invite(d.now, s, number, open, uint16(beside)), d.twin.invite(d.now, s, number, open, beside); got != want {
		return fmt.Errorf("invited: %v, want %v: %+v", got, want, *x)
	}
	if err := d.twin.compare(d.ledger); err != nil {
		return err
	}
	if got, want := d.ledger.Arrive(d.now, s, number), d.twin.arrive(d.now, s, number); got != want {
		return fmt.Errorf("arrived: %v, want %v: %+v", got, want, *x)
	}
	return d.twin.compare(d.ledger)
}

func (d *duel) answer(s Session) error {
	kind := Kind(d.choose(int(Rejection) + 1))
	d.log("answer %d %d", s, kind)
	limit, seq := d.ledger.Answer(d.now, s, kind)
	d.twin.answer(d.now, s, kind == Rejection)
	if x := d.twin.sessions[s]; limit != x.told() || seq != x.seq {
		return fmt.Errorf("answer: %d %d, want %d %d", limit, seq, x.told(), x.seq)
	}
	return d.twin.compare(d.ledger)
}

func (d *duel) update() error {
	delay := time.Duration(d.choose(5)) * DefaultTargetDelay / time.Duration(1+d.choose(4))
	rtt := time.Duration(d.choose(20)) * us
	d.log("update %v %v", delay, rtt)
	signal := Signal{Delay: delay, RTT: rtt}
	if got, want := d.ledger.Update(d.now, signal), d.twin.update(d.now, delay, rtt); got != want {
		return fmt.Errorf("updated: %v, want %v", got, want)
	}
	return d.twin.compare(d.ledger)
}

func (d *duel) pop() error {
	d.log("pop")
	s, limit, seq, ok := d.ledger.PopDrained(d.now)
	want, wantOK := d.twin.pop(d.now)
	if s != want || ok != wantOK {
		return fmt.Errorf("popped %d %v, want %d %v", s, ok, want, wantOK)
	}
	if x := d.twin.sessions[s]; ok && (limit != x.limit || seq != x.seq) {
		return fmt.Errorf("popped %d with %d %d, want %d %d", s, limit, seq, x.limit, x.seq)
	}
	return d.twin.compare(d.ledger)
}

// run makes a number of events happen. The ledger audits itself before and after each.
func (d *duel) run(t *testing.T, steps int) {
	t.Helper()
	defer func() {
		if fault := recover(); fault != nil {
			t.Fatalf("%v\nafter:\n%s", fault, lines(d.trace))
		}
	}()
	for range steps {
		if err := d.step(); err != nil {
			t.Fatalf("%v\nafter:\n%s", err, lines(d.trace))
		}
	}
}

func lines(trace []string) (text string) {
	for _, line := range trace {
		text += "  " + line + "\n"
	}
	return text
}

func TestLedgerAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	sequences := 20000
	if testing.Short() {
		sequences = 2000
	}
	for range sequences {
		newDuel(random.IntN).run(t, 25)
	}
	for range sequences / 1000 {
		newDuel(random.IntN).run(t, 2000)
	}
}

// FuzzEvents lets the fuzzer choose the order of events.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("a registration, a request, an answer, and so on until the bytes are used up"))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 11, 11, 11, 11, 1, 1, 1, 1, 255, 254, 253})
	f.Fuzz(func(t *testing.T, data []byte) {
		at := 0
		choose := func(n int) int {
			if at >= len(data) {
				return 0
			}
			at++
			return int(data[at-1]) * n / 256
		}
		d := newDuel(choose)
		for at < len(data) && len(d.trace) < 500 {
			d.run(t, 1)
		}
	})
}
