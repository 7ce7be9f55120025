package toolbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e5 is the client's throttle.
func e5() *Experiment {
	return &Experiment{
		ID: "E5", Title: "the client's throttle",
		About: "A backend that takes 100 calls a second (a bucket of 10), and refuses the rest after 10 ms; Poisson arrivals, 60 s after 10 s of warm-up. Local: calls that the throttle refuses; load: what\n" +
			"reaches the backend, of K C. Outage: a backend that takes 1,000 a second, offered 400, answers nothing for 150 s; first: until the first local refusal; recovered: from its return\n" +
			"until, for 2 s, at least 95 % of what is offered is accepted. Ours has K = 2, a window of 2 s and a probe every 100 ms; the book's formula has 120 s (SRE book, chapter 21).",
		Figures: []string{figOffered, figLocal, figLoad, figAccepted, figFirst, figRecovery},
		Charts:  []chart{{Figure: figLoad, Title: "Load of the backend", X: "offered, calls/s"}},
		Jobs:    e5Jobs, Judge: e5Judge,
	}
}

const (
	throttleK        = 2
	throttleTakes    = 100
	throttleBurst    = 10
	throttleTrip     = 10 * time.Millisecond
	throttleWarmup   = 10 * time.Second
	throttleMeasured = time.Minute
	outageOffered    = 400
	outageTakes      = 1000
	outageLength     = 150 * time.Second
	outageAfter      = 20 * time.Minute // it is watched for at most so long
	outageWindow     = 2 * time.Second
	armBook          = "book, 120 s"
	outage           = "outage"
)

// throttle is what refuses calls at the client.
type throttle interface {
	Admit(now clock.Time, draw float64) bool
	Answered(now clock.Time, accepted bool)
}

// throttles make the arms.
var throttles = map[string]func() throttle{
	armNone: func() throttle { return unthrottled{} },
	armBook: func() throttle { return &book{} },
	armOurs: func() throttle {
		t := client.NewThrottle(client.ThrottleConfig{K: throttleK})
		return &t
	},
}

// unthrottled refuses nothing.
type unthrottled struct{}

func (unthrottled) Admit(clock.Time, float64) bool { return true }
func (unthrottled) Answered(clock.Time, bool)      {}

// book is the formula of the SRE book over the last two minutes, and nothing else.
type book struct {
	requests, accepts [120]float64 // by second
	second            int64
}

func (b *book) advance(now clock.Time) int64 {
	for s := int64(now) / int64(time.Second); b.second < s; {
		b.second = max(b.second+1, s-int64(len(b.requests)))
		b.requests[b.second%int64(len(b.requests))], b.accepts[b.second%int64(len(b.accepts))] = 0, 0
	}
	return b.second % int64(len(b.requests))
}

func (b *book) Admit(now clock.Time, draw float64) bool {
	at := b.advance(now)
	var requests, accepts float64
	for i := range b.requests {
		requests, accepts = requests+b.requests[i], accepts+b.accepts[i]
	}
	b.requests[at]++
	return draw >= max(0, (requests-throttleK*accepts)/(requests+1))
}

func (b *book) Answered(now clock.Time, accepted bool) {
	if accepted {
		b.accepts[b.advance(now)]++
	}
}

func e5Jobs(size Size) (all []job) {
	for _, offered := range []float64{80, 150, 200, 400, 1000} {
		for _, arm := range []string{armNone, armBook, armOurs} {
			if arm == armBook && !size.Full {
				continue
			}
			all = append(all, job{Panel: "offered", At: fmt.Sprintf("%g/s", offered), X: offered, Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
				b := newBackend(seed, throttles[arm](), offered, throttleTakes)
				b.from = throttleWarmup
				if arm == armBook {
					b.from = 2 * time.Minute
				}
				err := simulate.Advance(ctx, b.w, b.from+throttleMeasured)
				return b.sample(), err
			}})
		}
	}
	for _, arm := range []string{armBook, armOurs} {
		all = append(all, job{At: outage, Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			return playOutage(ctx, throttles[arm](), seed)
		}})
	}
	return all
}

// backend takes so many calls a second, and its client has a throttle.
type backend struct {
	w        *sim.World
	rng      *rand.Rand
	throttle throttle
	offered  float64
	takes    float64
	down     bool
	tokens   float64
	filled   time.Duration

	from                           time.Duration
	made, local, reached, accepted int // from then on
	first                          time.Duration
	slices                         []float64 // accepted, by the second
}

func newBackend(seed uint64, t throttle, offered, takes float64) *backend {
	b := &backend{w: stage(seed), rng: rand.New(rand.NewPCG(seed, 0)), throttle: t, offered: offered, takes: takes}
	b.arrive()
	return b
}

// arrive makes a call, and foresees the next one.
func (b *backend) arrive() {
	b.w.At(b.w.Elapsed()+time.Duration(b.rng.ExpFloat64()/b.offered*float64(time.Second)), b.arrive)
	counts := b.w.Elapsed() >= b.from
	if counts {
		b.made++
	}
	if !b.throttle.Admit(b.w.Now(), b.rng.Float64()) {
		if counts {
			b.local++
		}
		if b.down && b.first == 0 {
			b.first = b.w.Elapsed()
		}
		return
	}
	ok := b.take()
	if counts {
		b.reached++
		if ok {
			b.accepted++
		}
	}
	if ok {
		i := int(b.w.Elapsed() / time.Second)
		for len(b.slices) <= i {
			b.slices = append(b.slices, 0)
		}
		b.slices[i]++
	}
	b.w.At(b.w.Elapsed()+throttleTrip, func() { b.throttle.Answered(b.w.Now(), ok) })
}

// take is the backend's decision.
func (b *backend) take() bool {
	now := b.w.Elapsed()
	b.tokens = min(b.tokens+b.takes*(now-b.filled).Seconds(), throttleBurst)
	b.filled = now
	if b.down || b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

func (b *backend) sample() Sample {
	seconds := (b.w.Elapsed() - b.from).Seconds()
	return Sample{Figures: map[string]float64{
		figOffered: float64(b.made) / seconds, figLocal: float64(b.local) / float64(b.made),
		figLoad: float64(b.reached) / seconds / (throttleK * b.takes), figAccepted: float64(b.accepted) / seconds,
	}}
}

// playOutage takes the backend away, and looks how long it takes until it is used again.
func playOutage(ctx context.Context, t throttle, seed uint64) (Sample, error) {
	b := newBackend(seed, t, outageOffered, outageTakes)
	begin := 2 * time.Minute
	end := begin + outageLength
	b.w.At(begin, func() { b.down = true })
	b.w.At(end, func() { b.down = false })
	if err := simulate.Advance(ctx, b.w, end); err != nil {
		return Sample{}, err
	}
	recovered := time.Duration(-1)
	for b.w.Elapsed() < end+outageAfter && recovered < 0 {
		if err := simulate.Advance(ctx, b.w, b.w.Elapsed()+time.Second); err != nil {
			return Sample{}, err
		}
		last := int(b.w.Elapsed()/time.Second) - 1
		if b.w.Elapsed() >= end+outageWindow && last < len(b.slices) && b.slices[last] >= 0.9*outageOffered && b.slices[last]+b.slices[last-1] >= 2*0.95*outageOffered {
			recovered = b.w.Elapsed() - end - outageWindow
		}
	}
	figures := map[string]float64{figFirst: float64(b.first - begin)}
	if recovered >= 0 {
		figures[figRecovery] = float64(recovered)
	}
	return Sample{Figures: figures}, nil
}

func e5Judge(t *Table) []Check {
	ours := only(t.Of(armOurs), func(r *Row) bool { return r.At != outage })
	light := only(ours, func(r *Row) bool { return r.X <= throttleK*throttleTakes })
	broken := []*Row{t.Row(outage, armOurs)}
	return []Check{
		bound("ours: load of the backend, of K C,", ours, figLoad, 1.05, false),
		bound("ours, up to K C offered: refused locally", light, figLocal, 0.05, false),
		bound("ours, 400/s offered: refused locally", []*Row{t.Row("offered, 400/s", armOurs)}, figLocal, 0.45, true),
		bound("ours, 1,000/s offered: refused locally", []*Row{t.Row("offered, 1000/s", armOurs)}, figLocal, 0.75, true),
		bound("ours: first refused locally within", broken, figFirst, float64(5*time.Second), false),
		bound("ours: recovered within window + 10 s:", broken, figRecovery, float64(12*time.Second), false),
		bound("the control arm, without a throttle: load of the backend at 1,000/s, of K C,", []*Row{t.Row("offered, 1000/s", armNone)}, figLoad, 4, true),
		bound("the control arm, two minutes of memory: recovered after", []*Row{t.Row(outage, armBook)}, figRecovery, float64(time.Minute), true),
	}
}
