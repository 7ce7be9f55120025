package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/wire"
)

// recovery is a load over a trigger that lasts ten seconds: 20 clients, one server that takes 1 ms for a request, and calls with a deadline of a second, all repeatable.
type recovery struct {
	w      *network
	server *node
	good   []int // answers in time, by the second in which they came
	calls  []int // by the second in which they were made
	nodes  []*node
}

const (
	recoveryFrom, recoveryTo, recoveryEnd = 5, 15, 35 // seconds: the trigger's beginning and end, and that of the load
)

// play makes calls at a rate, and has the trigger begin and end.
func play(t *testing.T, rate int, guard client.GuardConfig, trigger func(r *recovery, on bool)) *recovery {
	r := &recovery{w: newNetwork(t, 1), good: make([]int, recoveryEnd+10), calls: make([]int, recoveryEnd+10)}
	r.boot(1)
	var sessions []*Session
	for i := range 20 {
		n := r.w.node(byte(10+i), Config{Seed: uint64(i)})
		s, err := n.d.Open(r.w.now, r.server.addr)
		if err != nil {
			t.Fatal(err)
		}
		n.d.SetGuard(s, client.NewGuard(guard))
		r.nodes, sessions = append(r.nodes, n), append(sessions, s)
	}
	start := r.w.now
	second := func() int { return int(r.w.now.Sub(start) / time.Second) }
	r.w.at(start.Add(recoveryFrom*time.Second), func() { trigger(r, true) })
	r.w.at(start.Add(recoveryTo*time.Second), func() { trigger(r, false) })
	var arrive func()
	arrive = func() {
		if second() >= recoveryEnd {
			return
		}
		i := r.w.rng.IntN(len(sessions))
		r.calls[second()]++
		c := &Call{
			Session: sessions[i], Method: wire.MethodOf("work"), Payload: marked(1), Deadline: r.w.now.Add(time.Second), Repeatable: true,
			Done: func(c *Call) {
				if c.Outcome == OutcomeOK {
					r.good[second()]++
				}
			},
		}
		r.nodes[i].d.Submit(r.w.now, c)
		r.nodes[i].turn()
		r.w.at(r.w.now.Add(time.Duration(r.w.rng.ExpFloat64()*float64(time.Second)/float64(rate))), arrive)
	}
	arrive()
	r.w.run(start.Add((recoveryEnd + 5) * time.Second))
	return r
}

func (r *recovery) boot(epoch uint32) {
	r.server = r.w.node(1, Config{TrustedNetwork: true, Epoch: epoch, TokenKey: [32]byte{byte(epoch)}})
	r.server.unchecked = true
	r.server.serve(time.Millisecond, 10*time.Millisecond, nil)
}

// slow has the server take five times as long; gone, has it die, and another one come up in its place.
func slow(r *recovery, on bool) {
	r.server.service = time.Millisecond
	if on {
		r.server.service = 5 * time.Millisecond
	}
}

func gone(r *recovery, on bool) {
	if on {
		r.server.dead = true
		delete(r.w.nodes, r.server.addr)
		return
	}
	r.boot(2)
}

// whole is how many seconds after the trigger's end the goodput is back at 95 % of what is called, for good; from there on not a second is below nine tenths.
func (r *recovery) whole() int {
	for at := recoveryTo; at < recoveryEnd-2; at++ {
		good, calls, low := 0, 0, false
		for s := at; s < recoveryEnd; s++ {
			good, calls, low = good+r.good[s], calls+r.calls[s], low || 10*r.good[s] < 9*r.calls[s]
		}
		if !low && 100*good >= 95*calls {
			return at - recoveryTo
		}
	}
	return recoveryEnd - recoveryTo
}

// TestDefaultsRecover is why throttle and breaker are off unless they are set. A server that becomes slow (E3) or dies (E5) for ten seconds is whole within a second of its
// return with credits, budget and deadlines alone: its clients hold no credit meanwhile, so next to nothing is sent. With a throttle it comes to the same. A breaker
// adds what it is still open for when the server is back: here at most a second, where its default is 30.
func TestDefaultsRecover(t *testing.T) {
	if small() {
		t.Skip("six worlds of 40 s each")
	}
	for _, c := range []struct {
		name  string
		guard client.GuardConfig
		max   int // seconds until it is whole
	}{
		{"defaults", client.GuardConfig{}, 1},
		{"throttle", client.GuardConfig{Throttle: client.ThrottleConfig{K: 2}}, 1},
		{"breaker", client.GuardConfig{Breaker: client.BreakerConfig{Failures: 0.5, WaitMax: time.Second}}, 3},
	} {
		slowed, killed := play(t, 800, c.guard, slow), play(t, 800, c.guard, gone)
		t.Logf("%s: slow, whole after %d s, %v; gone, whole after %d s, %v", c.name, slowed.whole(), slowed.good[4:22], killed.whole(), killed.good[4:22])
		if slowed.whole() > c.max || killed.whole() > c.max {
			t.Errorf("%s: whole %d s after it was slow, %d s after it was gone", c.name, slowed.whole(), killed.whole())
		}
	}
}
