package sim

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
)

// stage is a machine and one session, whose calls are noted as they end.
type stage struct {
	w     *World
	m     *Machine
	h     *Host
	s     *Source
	ended []Observation
}

func newStage(t *testing.T) *stage {
	t.Helper()
	k := &stage{w: NewWorld(1, Network{OneWay: 5 * us})}
	var err error
	if k.m, err = k.w.AddMachine(dispatcher.Config{TrustedNetwork: true}, MachineConfig{Ledger: uncontrolled}); err != nil {
		t.Fatal(err)
	}
	k.s = k.w.NewSource(k.m, SourceConfig{Observe: func(o *Observation) {
		seen := *o
		call := *o.Call
		seen.Call = &call
		k.ended = append(k.ended, seen)
	}})
	k.h = k.w.AddHost(dispatcher.Config{})
	if err := k.s.AddClients(k.h, 1); err != nil {
		t.Fatal(err)
	}
	return k
}

// only is the outcome of the only call so far, and when it came.
func (k *stage) only(t *testing.T) (dispatcher.Outcome, time.Duration) {
	t.Helper()
	if len(k.ended) != 1 {
		t.Fatalf("%d calls have ended", len(k.ended))
	}
	return k.ended[0].Call.Outcome, k.ended[0].Ended.Sub(k.w.Instant(0))
}

// A machine that stalls takes nothing in and finishes nothing, and goes on when the stall is over.
func TestMachineStalls(t *testing.T) {
	k := newStage(t)
	k.s.Ask(0, Ask{Service: 20 * us})
	k.w.At(15*us, func() { k.m.Stall(100 * us) }) // in the middle of the handler
	k.w.Run(time.Millisecond)
	if o, at := k.only(t); o != dispatcher.OutcomeOK || at != 120*us {
		t.Errorf("%v at %v", o, at)
	}
	k.ended = nil
	k.m.Stall(100 * us)
	k.s.Ask(0, Ask{Service: 20 * us}) // arrives meanwhile
	k.w.Run(2 * time.Millisecond)
	if o, at := k.only(t); o != dispatcher.OutcomeOK || at != 1125*us {
		t.Errorf("%v at %v", o, at)
	}
}

// A client that stalls hears of its answer late, makes no calls, and neither cancels any nor closes its session.
func TestClientStalls(t *testing.T) {
	k := newStage(t)
	k.s.Ask(0, Ask{Service: 20 * us, Cancel: 50 * us})
	k.w.At(15*us, func() { k.h.Stall(100 * us) })
	k.w.At(20*us, func() {
		if k.s.Ask(0, Ask{}) {
			t.Error("a stalled client made a call")
		}
		k.s.Close(0)
	})
	k.w.Run(time.Millisecond)
	if o, at := k.only(t); o != dispatcher.OutcomeOK || at != 115*us {
		t.Errorf("%v at %v", o, at)
	}
	if k.s.Session(0) == nil {
		t.Error("a stalled client closed its session")
	}
}

func TestAskCancels(t *testing.T) {
	k := newStage(t)
	k.s.Ask(0, Ask{Service: time.Millisecond, Cancel: 50 * us})
	k.w.Run(200 * us)
	if o, at := k.only(t); o != dispatcher.OutcomeCancelled || at != 50*us {
		t.Errorf("%v at %v", o, at)
	}
	k.ended = nil
	k.s.Ask(0, Ask{Service: 10 * us, Cancel: 5 * time.Millisecond}) // has ended by then, and its object is another call's
	k.w.Run(4 * time.Millisecond)
	k.ended = nil
	k.s.Ask(0, Ask{Service: 3 * time.Millisecond})
	k.w.Run(20 * time.Millisecond)
	if o, _ := k.only(t); o != dispatcher.OutcomeOK {
		t.Errorf("the next call: %v", o)
	}
}

// A session that is closed ends its calls, and the next call opens another.
func TestSourceClose(t *testing.T) {
	k := newStage(t)
	k.s.Ask(0, Ask{Service: time.Millisecond})
	k.w.Run(100 * us)
	k.s.Close(0)
	if o, _ := k.only(t); o != dispatcher.OutcomeClosed || k.s.Session(0) != nil {
		t.Errorf("%v, session %v", o, k.s.Session(0))
	}
	k.s.Close(0) // there is none
	k.ended = nil
	k.s.Ask(0, Ask{Service: 10 * us})
	k.w.Run(50 * time.Millisecond)
	if o, _ := k.only(t); o != dispatcher.OutcomeOK {
		t.Errorf("after it: %v", o)
	}
	if got := k.m.Dispatcher().Snapshot().Sessions; got != 1 {
		t.Errorf("the server knows %d sessions", got)
	}
	k.h.Kill()
	if k.s.Session(0) != nil || k.s.Ask(0, Ask{}) {
		t.Error("a dead host has a session, or calls")
	}
	if err := k.w.Audit(); err != nil {
		t.Error(err)
	}
}

// What is refused when it is taken off the queue is told at once, and not when something else happens.
func TestLateRefusalLeavesAtOnce(t *testing.T) {
	k := newStage(t)
	k.s.Ask(0, Ask{Service: 10 * us}) // so that the session is known
	k.w.Run(time.Millisecond)
	k.s.Ask(0, Ask{Service: 300 * us})
	k.s.Ask(0, Ask{Deadline: 315 * us}) // what is left when it is taken off the queue is less than a round trip and a service
	k.ended = nil
	k.w.Run(10 * time.Millisecond)
	if len(k.ended) != 2 {
		t.Fatalf("%d calls have ended", len(k.ended))
	}
	done, refused := k.ended[0], k.ended[1]
	if done.Call.Outcome != dispatcher.OutcomeOK || refused.Call.Outcome != dispatcher.OutcomeRejected || refused.Ended != done.Ended {
		t.Errorf("%v at %v, %v at %v", done.Call.Outcome, done.Ended, refused.Call.Outcome, refused.Ended)
	}
}
