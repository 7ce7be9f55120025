package baseline

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

func newSeda(t *testing.T) *seda { return must(t, SEDA, Params{}).NewPolicy().(*seda) }

// reply answers with n equal latencies at once.
func (s *seda) reply(now clock.Time, n int, latency time.Duration) {
	for range n {
		s.Answered(now, client.Answer{Latency: latency})
	}
}

func TestSEDASettings(t *testing.T) {
	for _, c := range []struct {
		service            time.Duration
		clients            int
		increase, decrease float64
	}{
		{1 * us, 1000, 120, 1.04}, {10 * us, 1000, 40, 1.04}, {100 * us, 1000, 10, 1.3},
		{10 * us, 100, 400, 1.04}, {10 * us, 10_000, 4, 1.04},
	} {
		s := must(t, SEDA, Params{Service: c.service, Clients: c.clients}).NewPolicy().(*seda)
		if s.increase != c.increase || s.decrease != c.decrease || s.rate < 2 || s.rate >= 2+c.increase || s.tokens != 4 {
			t.Errorf("%v, %d clients: %v, %v, first rate %v", c.service, c.clients, s.increase, s.decrease, s.rate)
		}
		if want := (client.Limits{Expiry: 100 * us}); s.Limits() != want {
			t.Errorf("limits %+v", s.Limits())
		}
	}
	first := map[float64]bool{}
	scheme := must(t, SEDA, Params{Seed: 1})
	for range 100 {
		first[scheme.NewPolicy().(*seda).rate] = true
	}
	if len(first) != 100 {
		t.Errorf("100 clients begin with %d rates", len(first))
	}
}

func TestSEDALaw(t *testing.T) {
	// The target is 80 us. A batch of 100 equal latencies moves cur to 0.7 cur + 0.3 of them.
	for _, c := range []struct {
		name     string
		smoothed float64 // before, in us
		sample   time.Duration
		want     float64 // of a rate of 1000
	}{
		{"above the target", 80, 81 * us, 1000 / 1.04},
		{"at the target: no error, no change", 80, 80 * us, 1000},
		{"a little below: no change", 50, 50 * us, 1000},
		{"error -0.5: no change", 40, 40 * us, 1000},
		{"error -0.6: up by 0.5 adj_i", 32, 32 * us, 1000 + 0.5*40},
		{"error -1: up by 0.9 adj_i", 0, 0, 1000 + 0.9*40},
		{"the new one counts 0.3", 0, 240 * us, 1000}, // 72 us
		{"the old one counts 0.7", 160, 0, 1000 / 1.04},
	} {
		s := newSeda(t)
		s.rate, s.smoothed = 1000, c.smoothed*1000
		s.reply(at(0), sedaBatch, c.sample)
		if math.Abs(s.rate-c.want) > 1e-6 {
			t.Errorf("%s: %v, want %v (cur %v)", c.name, s.rate, c.want, s.smoothed)
		}
	}
	s := newSeda(t)
	s.rate = 2.01
	for range 3 {
		s.reply(at(0), sedaBatch, time.Second)
	}
	if s.rate != 2 {
		t.Errorf("less than 2/s: %v", s.rate)
	}
	s.rate, s.smoothed = 1e9-1, 0
	if s.reply(at(0), sedaBatch, 0); s.rate != 1e9 {
		t.Errorf("a rate without end: %v", s.rate)
	}
}

func TestSEDABatch(t *testing.T) {
	s := newSeda(t)
	s.rate = 1000
	s.reply(at(0), 99, time.Second)
	if s.count != 99 || s.rate != 1000 {
		t.Fatalf("%d in the batch, rate %v", s.count, s.rate)
	}
	s.Answered(at(0), client.Answer{Rejected: true}) // no reply
	if s.count != 99 {
		t.Fatalf("%d in the batch", s.count)
	}
	if s.reply(at(999*us), 1, 0); s.count != 0 || s.rate >= 1000 {
		t.Fatalf("100 replies do not end a batch: %d", s.count)
	}
	// The timeout counts from the end of the last batch.
	rate := s.rate
	s.reply(at(1998*us), 1, time.Second)
	if s.count != 1 || s.rate != rate {
		t.Fatal("a batch of 999 us")
	}
	if s.Answered(at(1999*us), client.Answer{Latency: time.Second, Lost: true}); s.count != 0 || s.rate >= rate {
		t.Fatal("a batch of 1 ms with two replies, one of them lost")
	}
}

// TestSEDAPercentile compares with the definition: the smallest that 99 % of the batch do not exceed.
func TestSEDAPercentile(t *testing.T) {
	rng := seedtest.Rand(t)
	for n := 1; n <= sedaBatch; n++ {
		s := newSeda(t)
		var all []time.Duration
		for range n {
			all = append(all, time.Duration(rng.IntN(100_000)))
		}
		copy(s.batch[:], all)
		s.count = n
		s.adapt()
		slices.Sort(all)
		want := all[n-1]
		for _, x := range slices.Backward(all) {
			below := 0
			for _, y := range all {
				if y <= x {
					below++
				}
			}
			if below*100 >= 99*n {
				want = x
			}
		}
		if math.Abs(s.smoothed-0.3*float64(want)) > 1e-6 {
			t.Fatalf("%d replies: %v, want 0.3 of %v", n, s.smoothed, want)
		}
	}
}

func TestSEDABucket(t *testing.T) {
	s := newSeda(t)
	s.rate = 1000
	now := at(0)
	for i := range 4 {
		if ok, _ := s.CanSend(now, 0); !ok {
			t.Fatalf("request %d of a burst of 4 is held back", i+1)
		}
		s.Sent(now)
	}
	ok, again := s.CanSend(now, 0)
	if ok || again.Sub(now) < time.Millisecond || again.Sub(now) > time.Millisecond+10 {
		t.Fatalf("the fifth may be sent: %v, or in %v", ok, again.Sub(now))
	}
	if ok, again = s.CanSend(at(600*us), 0); ok || again.Sub(at(0)) < time.Millisecond || again.Sub(at(0)) > time.Millisecond+10 {
		t.Fatalf("after 0.6 of a token: %v, or at %v", ok, again.Sub(at(0)))
	}
	if ok, _ = s.CanSend(again, 0); !ok {
		t.Fatal("not at the instant that it named")
	}
	if s.CanSend(at(time.Hour), 0); s.tokens != 4 {
		t.Fatalf("%v tokens after an hour", s.tokens)
	}
}

// TestSEDANamesInstants: at whatever rate, the named instant is in the future, and there is a token then.
func TestSEDANamesInstants(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 10_000 {
		s := newSeda(t)
		s.rate = math.Pow(10, 0.4+8.6*rng.Float64())
		s.tokens = rng.Float64()
		now := at(time.Duration(rng.Int64N(int64(time.Hour))))
		ok, again := s.CanSend(now, 0)
		if ok || again <= now {
			t.Fatalf("rate %v, %v tokens: %v, at %v", s.rate, s.tokens, ok, again.Sub(now))
		}
		if ok, _ := s.CanSend(again, 0); !ok {
			t.Fatalf("rate %v: %v tokens at the instant named", s.rate, s.tokens)
		}
	}
}

// TestSEDARateHasNoPast: a change of the rate does not touch the tokens that have come before it.
func TestSEDARateHasNoPast(t *testing.T) {
	s := newSeda(t)
	s.rate, s.tokens = 1000, 0
	s.CanSend(at(0), 0)
	s.reply(at(1001*us), sedaBatch, time.Second)
	if ok, _ := s.CanSend(at(1001*us), 0); !ok || s.rate >= 1000 {
		t.Errorf("%v tokens after 1.001 ms at 1000 a second, rate now %v", s.tokens, s.rate)
	}
}

// TestColdSEDA begins with next to nothing.
func TestColdSEDA(t *testing.T) {
	s := must(t, SEDA, Params{Tuning: Tuning{SEDA: SEDATuning{Cold: true}}}).NewPolicy().(*seda)
	if s.rate < 2 || s.rate >= 4 {
		t.Errorf("first rate %v", s.rate)
	}
	if ok, _ := s.CanSend(at(0), 0); ok {
		t.Error("begins with a token")
	}
}
