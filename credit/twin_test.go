package credit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// twin is the ledger and Breakwater's law once more, slow and obvious: a map of sessions, lists of limits, and every
// sum recomputed whenever it is asked for. It follows the text of the law, not the code.
type twin struct {
	sessions map[Session]*twinSession
	slots    int
	lease    time.Duration
	life     time.Duration
	perWake  int

	turns             map[bool]map[int]int // of the drained: what the sessions of each weight are owed
	workers, pool     float64
	peak, recovery    float64
	alpha, beta       float64
	floor, overTarget bool
	invites           bool    // the scheme does
	open              float64 // share at the target
	idleCounts        bool
	target            time.Duration
	due               clock.Time
	wakes             int
	busy              bool
	wanting, waiting  []Session
	cursor, used      Session
	ahead, refused    uint64
}

// twinLimit is a limit that a client may believe in.
type twinLimit struct {
	limit uint64
	seq   uint32
}

type twinSession struct {
	limit, sent uint64
	seq         uint32
	pending     int
	demand      int
	weight      int
	woken       bool
	seen        clock.Time
	lapsed      bool

	past, later []twinLimit // limits above the present one that may be believed in: two generations
	pastSeq     uint32      // the last seq of the first generation
	grace       bool
	lapsedAt    clock.Time
	barred      bool   // the grace is over
	barFrom     uint64 // numbers from here up to the limit were passed over after it
	bars        bool
}

func (x *twinSession) window() int { return int(x.limit-x.sent) + x.pending }

// told is the limit that the client is told.
func (x *twinSession) told() uint64 {
	if x.bars {
		return x.barFrom
	}
	return x.limit
}

func (x *twinSession) highest() uint64 {
	highest := x.limit
	for _, l := range append(slices.Clone(x.past), x.later...) {
		highest = max(highest, l.limit)
	}
	return highest
}

func (x *twinSession) set(limit uint64) {
	if limit == x.limit {
		return
	}
	before := twinLimit{x.limit, x.seq}
	x.limit, x.seq, x.bars = limit, x.seq+1, false
	below := func(l twinLimit) bool { return l.limit <= limit }
	x.past, x.later = slices.DeleteFunc(x.past, below), slices.DeleteFunc(x.later, below)
	if before.limit > limit {
		if len(x.past) == 0 {
			x.past, x.pastSeq, x.later = []twinLimit{before}, before.seq, nil
		} else {
			x.later = append(x.later, before)
		}
	}
	if len(x.past) == 0 {
		x.grace, x.barred = false, false
	}
}

func (x *twinSession) applied(seq uint32) {
	switch {
	case seq > x.seq || len(x.past) == 0:
		return
	case seq == x.seq:
		x.past, x.later = nil, nil
	case seq > x.pastSeq:
		x.past, x.later, x.pastSeq = x.later, nil, x.seq-1
	}
	if len(x.past) == 0 {
		x.later, x.grace, x.barred = nil, false, false
	}
}

func (w *twin) issued() (sum int) {
	for _, x := range w.sessions {
		sum += x.window()
	}
	return sum
}

func (w *twin) pending() (sum int) {
	for _, x := range w.sessions {
		sum += x.pending
	}
	return sum
}

func (w *twin) active() (n int) {
	for _, x := range w.sessions {
		if !x.lapsed {
			n++
		}
	}
	return n
}

// bound keeps the pool and its peak within [workers, slots n_c]; called after every change of n_c.
func (w *twin) bound() {
	for _, x := range []*float64{&w.pool, &w.peak} {
		*x = math.Max(w.workers, math.Min(*x, float64(w.slots*w.active())))
	}
}

// share is the session's part of the pool.
func (w *twin) share(x *twinSession) float64 {
	sum := 0
	for _, other := range w.sessions {
		if !other.lapsed {
			sum += other.weight
		}
	}
	return float64(w.c()) * float64(x.weight) / float64(sum)
}

func (w *twin) c() int { return int(math.Floor(w.pool)) }

func (w *twin) leave(s Session) {
	w.wanting = slices.DeleteFunc(w.wanting, func(x Session) bool { return x == s })
	w.waiting = slices.DeleteFunc(w.waiting, func(x Session) bool { return x == s })
}

func (w *twin) listed(s Session) bool { return slices.Contains(append(w.wanting, w.waiting...), s) }

func (w *twin) join(s Session) {
	switch {
	case slices.Contains(w.wanting, s) || slices.Contains(w.waiting, s):
		return
	case w.sessions[s].demand > 0:
		w.wanting = append(w.wanting, s)
	case !w.inviting():
		w.waiting = append(w.waiting, s)
	}
	w.sessions[s].woken = false
}

// unequal reports whether the weights of those that count differ from one.
func (w *twin) unequal() bool {
	for _, x := range w.sessions {
		if !x.lapsed && x.weight != 1 {
			return true
		}
	}
	return false
}

func (w *twin) inviting() bool { return w.invites && !w.unequal() }

// invite is a request without a credit: its number is the next one, whatever was before.
func (w *twin) invite(now clock.Time, s Session, number uint64, open bool, beside int) bool {
	x := w.sessions[s]
	if x.pending > beside || number < x.sent || number < x.told() || number >= 1<<62 {
		return false
	}
	w.busy = true
	w.leave(s)
	x.woken = false
	x.sent = number
	if open && w.inviting() {
		x.set(number + 1)
		x.seen = now
		return true
	}
	x.set(number)
	x.demand = max(x.demand, 1)
	w.join(s)
	return true
}

func (w *twin) register(now clock.Time, s Session) {
	w.sessions[s] = &twinSession{limit: 1, seen: now, weight: 1}
	w.used = max(w.used, s+1)
	w.bound()
}

func (w *twin) deregister(s Session) {
	w.leave(s)
	delete(w.sessions, s)
	w.bound()
}

func (w *twin) ungrace(now clock.Time, x *twinSession) {
	units := func(t clock.Time) int64 { return int64(t) >> graceShift } // the grace is that coarse, and rounded up
	if x.grace && units(now)-units(x.lapsedAt) > int64(w.life)>>graceShift+1 {
		x.grace, x.barred = false, true
	}
}

func (w *twin) pass(x *twinSession, next uint64) {
	switch {
	case next <= x.sent:
	case next > x.highest():
		w.ahead++
	case next <= x.limit:
		x.sent = next
	default:
		from, barred := x.limit, x.barred
		if x.bars {
			from = x.barFrom
		}
		x.set(next)
		x.sent = next
		x.barFrom, x.bars = from, barred
	}
}

func (w *twin) heard(now clock.Time, s Session, next uint64, seq uint32, demand int, newer bool) {
	x := w.sessions[s]
	w.ungrace(now, x)
	w.pass(x, next)
	x.applied(seq)
	if newer {
		known := x.demand > 0
		x.demand = min(demand, w.slots)
		if listed := w.listed(s); listed && known != (x.demand > 0) {
			w.leave(s)
			w.join(s)
		}
	}
	x.seen, x.lapsed = now, false
	w.bound()
}

func (w *twin) arrive(now clock.Time, s Session, number uint64) bool {
	x := w.sessions[s]
	w.ungrace(now, x)
	allowed := x.highest()
	if x.barred {
		allowed = x.limit
	}
	if x.bars {
		allowed = x.barFrom
	}
	if number >= allowed || x.pending == w.slots {
		w.refused++
		return false
	}
	w.pass(x, number+1)
	x.pending++
	x.seen, x.lapsed = now, false
	w.busy = true
	w.bound()
	w.leave(s)
	return true
}

func (w *twin) answer(now clock.Time, s Session, rejected bool) {
	x := w.sessions[s]
	if x.pending == 0 {
		return
	}
	w.busy = true
	before, issued, rest := x.window(), w.issued(), x.pending-1
	after := rest
	if !x.lapsed {
		overcommit := max(int(math.Floor(float64(w.c()-issued)/float64(w.active()))), 1)
		above := float64(before) > w.share(x)+1e-9
		turns := w.unequal() && w.share(x) < 1-1e-9
		switch {
		case turns && w.c() < issued+min(w.active(), 64)/2:
			after = min(rest+x.demand+overcommit, before-1)
		case issued < w.c() && (!above || len(w.wanting) == 0):
			after = min(rest+x.demand+overcommit, before+w.c()-issued, max(int(w.share(x)+1e-9), before+1))
		case issued > w.c() && above:
			after = min(rest+x.demand+overcommit, before-1)
		default:
			after = min(rest+x.demand+overcommit, before)
		}
		if after == 0 && !rejected && w.floor && !w.overTarget && !turns {
			after = overcommit
		}
		if w.inviting() && w.open < openMax && rest == 0 && x.demand == 0 {
			after = 0
		}
		after = max(min(after, w.slots), rest)
		x.seen = now
	}
	x.pending = rest
	x.set(x.sent + uint64(after-rest))
	switch {
	case x.limit > x.sent:
		w.leave(s)
	case x.pending == 0 && !x.lapsed:
		w.join(s)
	}
}

func (w *twin) probe(now clock.Time, s Session, next uint64, seq uint32, demand int, newer bool) (answered bool) {
	w.heard(now, s, next, seq, demand, newer)
	x := w.sessions[s]
	w.busy = true
	if newer && next > x.limit {
		x.sent = x.limit
	}
	if x.limit > x.sent {
		return true
	}
	if x.demand > 0 && x.pending < w.slots {
		w.join(s)
	}
	return false
}

func (w *twin) update(now clock.Time, delay, rtt time.Duration) bool {
	if now < w.due {
		return false
	}
	w.due = now.Add(max(rtt, 10*us))
	w.overTarget = delay >= w.target
	w.adaptShare(float64(delay-w.target) / float64(w.target))
	n := float64(w.active())
	if delay < w.target {
		calling := n
		if !w.idleCounts {
			calling = math.Min(n, float64(w.pending()))
		}
		step := math.Max(w.alpha*calling, 1)
		active := w.busy || w.pending() > 0 || len(w.wanting)+len(w.waiting) > 0
		if active {
			w.pool = math.Max(w.pool, DefaultCatchUp*float64(w.issued()))
			w.bound()
		}
		if active && w.pool-float64(w.issued()) <= step+DefaultHeadroom*math.Min(n, float64(w.slots)) {
			if len(w.wanting)+len(w.waiting) > 0 {
				step = math.Max(step, w.recovery*float64(w.target-delay)/float64(w.target)*(w.peak-w.pool))
			}
			w.pool += step
			w.bound()
			w.peak = math.Max(w.peak, w.pool)
		}
	} else {
		excess := float64(delay-w.target) / float64(w.target)
		base := w.pool
		if !w.idleCounts && excess < 1 {
			base = math.Min(base, float64(w.pending())+math.Max(w.pool-float64(w.issued()), 0))
		}
		w.pool -= base * math.Min(w.beta*excess, 0.5)
		w.peak *= math.Max(1-w.beta*excess/4, 0.5)
	}
	w.bound()
	w.wakes, w.busy = w.perWake, false
	return true
}

// adaptShare moves the share of calls that are invited: slowly, and fast when nothing waits.
func (w *twin) adaptShare(excess float64) {
	factor := 1 - openGain*math.Min(excess, 1)
	if excess < 0 {
		factor = 1 - openGain*excess*(1+openIdle*math.Pow(excess, 8))
	}
	w.open = math.Max(1.0/InvitedAll, math.Min(w.open*factor, openMax))
}

// turn picks the weight that is owed most, after each has got what it is due, and of that weight the first session.
func (w *twin) turn(sessions []Session, wanting bool) (s Session) {
	due, total := map[int]int{}, 0
	for _, s := range sessions {
		due[w.sessions[s].weight] = 0
	}
	for s, x := range w.sessions {
		if _, waits := due[x.weight]; waits && (x.woken || slices.Contains(sessions, s)) {
			due[x.weight] += x.weight
			total += x.weight
		}
	}
	owed := map[int]int{}
	best := 0
	for _, weight := range slices.Sorted(maps.Keys(due)) {
		if len(due) > 1 {
			owed[weight] = w.turns[wanting][weight] + due[weight]
		}
		if best == 0 || owed[weight] > owed[best] {
			best = weight
		}
	}
	if len(due) > 1 {
		owed[best] -= total
	}
	if len(due) > 0 {
		w.turns[wanting] = owed
	}
	for _, s := range sessions {
		if w.sessions[s].weight == best {
			return s
		}
	}
	return 0
}

func (w *twin) pop(now clock.Time) (Session, bool) {
	all := append(slices.Clone(w.wanting), w.waiting...)
	if len(all) == 0 || w.wakes == 0 || w.issued() >= w.c() {
		return 0, false
	}
	var s Session
	if len(w.wanting) > 0 {
		s = w.turn(w.wanting, true)
	} else {
		s = w.turn(w.waiting, false)
	}
	w.leave(s)
	w.wakes--
	x := w.sessions[s]
	x.set(x.sent + 1)
	x.seen, x.woken = now, true
	return s, true
}

func (w *twin) sweep(now clock.Time, most int) (lapsed int) {
	for range min(most, int(w.used)-1) {
		if w.cursor == w.used {
			w.cursor = 1
		}
		s := w.cursor
		w.cursor++
		x := w.sessions[s]
		if x == nil {
			continue
		}
		w.ungrace(now, x)
		if x.lapsed || now.Sub(x.seen) <= w.lease {
			continue
		}
		lapsed++
		w.leave(s)
		x.set(x.sent)
		x.lapsed, x.woken = true, false
		if len(x.past) > 0 && !x.barred {
			x.grace, x.lapsedAt = true, now
		}
		w.bound()
	}
	return lapsed
}

// compare says where the ledger and its twin differ.
func (w *twin) compare(l *Ledger) error {
	have := l.Totals()
	if int(have.Issued) != w.issued() || int(have.Pending) != w.pending() || int(have.Active) != w.active() ||
		int(have.Registered) != len(w.sessions) || int(have.Pool) != w.c() ||
		int(have.Drained) != len(w.wanting)+len(w.waiting) {
		return fmt.Errorf("totals %+v; want issued %d pending %d active %d of %d, pool %v, drained %d", have,
			w.issued(), w.pending(), w.active(), len(w.sessions), w.pool, len(w.wanting)+len(w.waiting))
	}
	if have.Counters.Ahead != w.ahead || have.Counters.Refused+have.Counters.Full != w.refused {
		return fmt.Errorf("counters %+v; want ahead %d, refused %d", have.Counters, w.ahead, w.refused)
	}
	for s, x := range w.sessions {
		e := l.at(s)
		if e == nil {
			return fmt.Errorf("session %d is missing", s)
		}
		if e.limit != x.limit || e.seq != x.seq || e.sent != x.sent || int(e.pending) != x.pending ||
			int(e.demand) != x.demand || e.limit+uint64(e.oldOver) != x.highest() || e.is(flagLapsed) != x.lapsed {
			return fmt.Errorf("session %d is %+v; want %+v", s, *e, *x)
		}
	}
	return nil
}
