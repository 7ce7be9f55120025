package sim

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// watched counts the updates of a law that is always due.
type watched struct {
	*credit.None
	updates int
}

func (w *watched) UpdateDue(clock.Time) bool { return true }

func (w *watched) Update(clock.Time, credit.Signal, credit.Load) bool {
	w.updates++
	return true
}

// The thread of the law sleeps for 10 us, and then waits for its turn: on an idle machine that is at once, and behind handlers it is not.
func TestLawThread(t *testing.T) {
	law := &watched{None: credit.NewNone(slots)}
	m := MachineConfig{CPUs: 1, Threads: true, Law: &LawThread{}}
	m.Ledger = func() *credit.Ledger { return credit.NewLedger(credit.Config{}, m.Law.Of(law)) }
	b := newBench(t, Network{OneWay: 5 * us}, m, SourceConfig{Service: constant(8 * us)}, 20)
	b.w.Run(10 * time.Millisecond)
	if law.updates != 1000 {
		t.Errorf("%d updates in 10 ms of nothing to do", law.updates)
	}
	law.updates = 0
	b.rate(t, 1e6)
	b.w.Run(20 * time.Millisecond)
	// Each of 20 clients may have its slots full, of 8 us: the thread waits behind many of them.
	if law.updates == 0 || law.updates > 300 {
		t.Errorf("%d updates in 10 ms of overload", law.updates)
	}
	b.rate(t, 0)
	b.m.Kill()
	b.m.Restart()
	b.w.Run(5 * time.Second) // what waits at the clients is over
	law.updates = 0
	b.w.Run(5*time.Second + 10*time.Millisecond)
	if law.updates < 999 || law.updates > 1001 {
		t.Errorf("%d updates in 10 ms of another process", law.updates)
	}
	if err := b.w.Audit(); err != nil {
		t.Error(err)
	}
}

// What a law says besides its updates is not changed by its thread.
func TestLawThreadSaysWhatTheLawSays(t *testing.T) {
	plain := (&LawThread{}).Of(credit.NewNone(slots))
	if _, levels := credit.As[credit.Leveler](plain); levels {
		t.Error("a law without levels has one")
	}
	if _, drops := credit.As[credit.Dequeuer](plain); drops {
		t.Error("a law that is not asked at the queue drops there")
	}
	law := (&LawThread{}).Of(choosy{credit.NewNone(slots)})
	if l, ok := credit.As[credit.Leveler](law); !ok || l.Level() != 7 {
		t.Error("a law that has levels is not asked")
	}
	if d, ok := credit.As[credit.Dequeuer](law); !ok || d.Dequeue(1, time.Second, 1) {
		t.Error("a law that drops is not asked")
	}
	if i, ok := credit.As[credit.Inviter](law); !ok || i.Invited(0) != 5 {
		t.Error("a law that invites is not asked")
	}
}

type choosy struct{ *credit.None }

func (choosy) Level() uint8                                { return 7 }
func (choosy) Invited(time.Duration) uint8                 { return 5 }
func (choosy) Dequeue(clock.Time, time.Duration, int) bool { return false }

// Packets wait while threads are ready, and not for longer than until their turn comes.
func TestPacketsWaitTheirTurn(t *testing.T) {
	const handler = 8 * us
	m := MachineConfig{CPUs: 1, Threads: true, Costs: Costs{Receive: us}}
	b := newBench(t, Network{OneWay: 5 * us}, m, SourceConfig{Service: constant(handler)}, 100)
	b.rate(t, 1.2e5)
	var oldest time.Duration
	for at := us; at < 5*time.Millisecond; at += us {
		b.w.At(at, func() {
			if p := b.m.queues[0].nic.head; p != nil {
				oldest = max(oldest, b.w.now.Sub(p.arrival))
			}
		})
	}
	b.w.Run(5 * time.Millisecond)
	if most := packetsAfter + handler + packetsAtOnce*us; oldest < handler || oldest > most {
		t.Errorf("a packet waited for %v: more than one handler takes, and at most %v", oldest, most)
	}
}
