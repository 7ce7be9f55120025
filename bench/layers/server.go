//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// What a server answers to.
const (
	methodGreet = "greet" // answers, for who wants to be known
	methodWork  = "work"
)

// port is where servers listen.
const port = 7700

// slo is of servers whose two CPUs are shared by four processes of this lab and by whoever else is there: it must not be the machine that makes them refuse.
const slo = 200 * time.Millisecond

// mood is what the leaf does.
type mood int32

// The moods.
const (
	moodWell        mood = iota // it answers
	moodUnavailable             // it answers that it could not get what it needs
	moodHangs                   // it does not answer until nobody waits any more
	moodRefuses                 // it is refused at its door, with "do not retry"
)

// serveRequest starts a layer.
type serveRequest struct {
	Below  string `json:"below"` // address of the next server; "" = this is the leaf
	Habits habits `json:"habits"`
}

// awaited is what a process can be asked to wait for: how many handlers have begun, and of how many the contexts were cancelled.
type awaited struct {
	Entered   int `json:"entered_count"`
	Cancelled int `json:"cancelled_count"`
}

// seen is what the handlers of a layer saw.
type seen struct {
	Entered   int            `json:"entered_count"`
	Cancelled []clock.Time   `json:"cancelled"`  // when each saw it
	Ran       map[uint64]int `json:"ran_counts"` // handlers begun, by the user's mark
	Offered   uint64         `json:"offered_count"`
	Stops     uint64         `json:"interrupted_count"` // as the runtime counts what it has told handlers
}

// guardTime ends a wait that would never end. Nothing waits for it when all is well.
const guardTime = 30 * time.Second

// layer is a server's process.
type layer struct {
	place lab.Place
	srv   *sw.Server
	below *caller
	stop  context.CancelFunc
	done  chan error
	mood  atomic.Int32

	mu   sync.Mutex
	seen seen
}

func runLayer() error {
	l := &layer{seen: seen{Ran: map[uint64]int{}}}
	err := serveChild(map[string]func(json.RawMessage) (any, error){
		lab.MethodGo: func(raw json.RawMessage) (any, error) { return nil, json.Unmarshal(raw, &l.place) },
		"serve":      decode(l.serve),
		"mood":       decode(func(m mood) (any, error) { return nil, l.setMood(m) }),
		"await":      decode(func(a awaited) (any, error) { return nil, l.await(a) }),
		"seen":       decode(func(struct{}) (any, error) { return l.report() }),
		"traffic":    decode(func(struct{}) (any, error) { return l.below.counter.traffic(), nil }),
		"stats":      decode(func(struct{}) (any, error) { return l.below.stats() }),
	})
	return errors.Join(err, l.close())
}

// serveChild obeys the parent, over standard input and output.
func serveChild(handlers map[string]func(json.RawMessage) (any, error)) error {
	in, err := lab.Stdin()
	if err != nil {
		return err
	}
	return lab.ServeChild(in, os.Stdout, handlers)
}

// decode makes a handler of the control protocol out of a typed function.
func decode[T any](f func(T) (any, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var request T
		if err := json.Unmarshal(raw, &request); err != nil {
			return nil, err
		}
		return f(request)
	}
}

func (l *layer) serve(r serveRequest) (_ any, err error) {
	if r.Below != "" {
		if l.below, err = dialCaller(l.place.Below, r.Below, r.Habits); err != nil {
			return nil, err
		}
	}
	// Handlers here wait, and compute nothing: as many as there are workers get on at the same time.
	cfg := sw.ServerConfig{Endpoint: endpointAt(&l.place, port), SLO: slo, Workers: workers, Parallel: workers}
	if l.srv, err = sw.NewServer(cfg); err != nil {
		return nil, err
	}
	greet := func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) { return reply, nil }
	if err = errors.Join(l.srv.Handle(methodGreet, greet), l.srv.Handle(methodWork, l.work)); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.done = stop, make(chan error, 1)
	go func() { l.done <- l.srv.Serve(ctx) }()
	return l.srv.Addr(), nil
}

// work is the method of all layers: the leaf does as its mood is, the others ask the next one.
func (l *layer) work(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
	mark := uint64(0)
	if len(req.Payload) >= markBytes {
		mark = binary.BigEndian.Uint64(req.Payload)
	}
	l.enter(mark)
	err := l.answer(ctx, mark)
	if errors.Is(ctx.Err(), context.Canceled) { // before it returns, which ends it as well
		l.mu.Lock()
		l.seen.Cancelled = append(l.seen.Cancelled, clock.Now())
		l.mu.Unlock()
	}
	return reply, err
}

func (l *layer) answer(ctx context.Context, mark uint64) error {
	switch {
	case l.below != nil:
		return l.below.call(ctx, mark)
	case mood(l.mood.Load()) == moodHangs:
		<-ctx.Done()
		return ctx.Err()
	case mood(l.mood.Load()) == moodUnavailable:
		return sw.ErrUnavailable
	default:
		return nil
	}
}

func (l *layer) enter(mark uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen.Entered++
	l.seen.Ran[mark]++
}

func (l *layer) setMood(m mood) error {
	was := mood(l.mood.Swap(int32(m)))
	switch {
	case m == was:
		return nil
	case m == moodRefuses:
		return l.srv.ShedShare(1)
	case was == moodRefuses:
		return l.srv.ShedShare(0)
	default:
		return nil
	}
}

// await waits until so many handlers have begun and so many contexts have ended.
func (l *layer) await(a awaited) error {
	for begin := clock.Now(); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		entered, cancelled := l.seen.Entered, len(l.seen.Cancelled)
		l.mu.Unlock()
		if entered >= a.Entered && cancelled >= a.Cancelled {
			return nil
		}
		if clock.Now().Sub(begin) > guardTime {
			return fmt.Errorf("after %v %d of %d handlers have begun, and %d of %d were cancelled", guardTime, entered, a.Entered, cancelled, a.Cancelled)
		}
	}
}

func (l *layer) report() (seen, error) {
	stats, err := l.srv.Stats()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seen
	s.Offered, s.Stops = stats.Offered, stats.Interrupted
	return s, err
}

// close ends the server before what its handlers call.
func (l *layer) close() (err error) {
	if l.srv != nil && l.stop != nil {
		l.stop()
		err = <-l.done
	}
	if l.below != nil {
		err = errors.Join(err, l.below.client.Close())
	}
	return err
}
