package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// frugal gives what is asked for, and keeps nobody in stock.
type frugal struct{ *credit.None }

func (frugal) Window(h credit.Holding) uint64 { return h.Pending + h.Demand }

// Each call asks first: a message there, a credit back, and only then the request. So it takes one round trip more, and none waits for a timer.
func TestAskingTakesARoundTrip(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.service = 10 * time.Microsecond
	server.d.Serve(ServeConfig{Credit: credit.NewLedger(credit.Config{Asking: true, Slots: 64}, frugal{credit.NewNone(64)})})
	if err := server.d.Register(&Method{Name: "work", ID: wire.MethodOf("work"), Run: server.handle}); err != nil {
		t.Fatal(err)
	}
	c := w.node(2, Config{ClientPolicy: func() client.Policy { return &scripted{limits: client.Limits{Ask: true}} }})
	s, err := c.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	c.call(s, 0, 0) // registers, which needs no credit
	w.run(w.now.Add(time.Millisecond))
	var calls []*call
	for i := range 5 {
		before := w.now
		calls = append(calls, c.call(s, uint64(1+i), 0))
		for calls[i].done == 0 && w.now < before.Add(time.Millisecond) {
			w.run(w.now + 1000)
		}
		if took := w.now.Sub(before); took > 40*time.Microsecond { // two round trips of 10 us and 10 us of service; the first probe by timer comes after 50
			t.Errorf("call %d took %v", i, took)
		}
	}
	if stats := server.d.Snapshot(); stats.Probes != 5 || stats.CreditUpdates != 5 || stats.Offered != 6 {
		t.Errorf("%d asked, %d told, %d requests", stats.Probes, stats.CreditUpdates, stats.Offered)
	}
	if got := outcomes(calls); !slices.Equal(got, []Outcome{OutcomeOK, OutcomeOK, OutcomeOK, OutcomeOK, OutcomeOK}) {
		t.Errorf("outcomes %v", got)
	}
	audit(t, c, server)
}

// A shell that keeps the order itself is told of each request, starts whichever it wants, and says how long the queue is.
func TestStartInAnotherOrder(t *testing.T) {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	type told struct {
		r  *Request
		at clock.Time
	}
	var queued []told
	control := &door{None: credit.NewNone(64), level: 128}
	server.workers = 0 // the test runs the requests
	server.d.Serve(ServeConfig{
		Credit: credit.NewLedger(credit.Config{Slots: 64}, control), Workers: 2,
		Queued:  func(r *Request) { queued = append(queued, told{r, w.now}) },
		Backlog: func(clock.Time) (time.Duration, int) { return 7 * time.Microsecond, 5 },
	})
	if err := server.d.Register(&Method{Name: "work", ID: wire.MethodOf("work")}); err != nil {
		t.Fatal(err)
	}
	c := w.node(2, Config{})
	s, err := c.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	var calls []*call
	for i := range 3 {
		calls = append(calls, c.call(s, uint64(i), 0))
	}
	run := func(i int, queuedAt clock.Time) *Request {
		r := server.d.Start(w.now, queued[i].r, queuedAt)
		if r != nil {
			r.Started, r.Finished = w.now, w.now
		}
		return r
	}
	w.run(w.now.Add(100 * time.Microsecond))
	if len(queued) != 1 || server.d.Delay() != 7*time.Microsecond || control.arrivals[0].Delay != 7*time.Microsecond {
		t.Fatalf("%d queued, delay %v, at the door %v", len(queued), server.d.Delay(), control.arrivals[0].Delay)
	}
	server.d.Complete(w.now, run(0, queued[0].at))
	server.turn() // the others had to wait for the first limit
	w.run(w.now.Add(100 * time.Microsecond))
	if len(queued) != 3 {
		t.Fatalf("%d queued, want 3", len(queued))
	}
	if r := run(2, queued[2].at-1); r != nil {
		t.Error("a request was started that was queued at another time: it may be another one by now")
	}
	last := run(2, queued[2].at)
	if last == nil || last.Number() != 2 || run(2, queued[2].at) != nil {
		t.Fatalf("started %+v, or twice", last)
	}
	if middle := server.d.Next(w.now); middle == nil || middle.Number() != 1 {
		t.Fatalf("next is %+v", middle)
	} else {
		middle.Started, middle.Finished = w.now, w.now
		server.d.Complete(w.now, middle)
	}
	server.d.Complete(w.now, last)
	server.turn()
	w.run(w.now.Add(100 * time.Microsecond))
	if got := outcomes(calls); !slices.Equal(got, []Outcome{OutcomeOK, OutcomeOK, OutcomeOK}) || server.d.Pending() != 0 {
		t.Errorf("outcomes %v, %d pending", got, server.d.Pending())
	}
	if got := control.queued; !slices.Equal(got, []int{5, 6, 5}) { // behind each: the packets, and the other request
		t.Errorf("behind those that were taken: %v", got)
	}
	audit(t, c, server)
}
