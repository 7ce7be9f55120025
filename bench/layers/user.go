//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// dialRequest opens the user's sessions.
type dialRequest struct {
	Front  string `json:"front"`
	Habits habits `json:"habits"`
}

// loadRequest makes requests at random instants, at a rate.
type loadRequest struct {
	PerS     float64       `json:"per_s"`
	Duration time.Duration `json:"duration_ns"`
	Seed     uint64        `json:"seed"`
}

// ended is one of the user's requests. Its mark is its place in the list, from 1.
type ended struct {
	Due      clock.Time `json:"due_ns"`
	Finished clock.Time `json:"finished_ns"`
	OK       bool       `json:"ok"`
	Error    string     `json:"error,omitempty"`
}

// user is the process of the load. It sleeps from one request to the next.
type user struct {
	place lab.Place
	front *caller

	cancel context.CancelFunc
	held   chan error // of the calls that are to be cancelled
}

func runUser() error {
	u := &user{}
	err := serveChild(map[string]func(json.RawMessage) (any, error){
		lab.MethodGo: func(raw json.RawMessage) (any, error) { return nil, json.Unmarshal(raw, &u.place) },
		"dial":       decode(u.dial),
		"load":       decode(func(r loadRequest) (any, error) { return u.load(r), nil }),
		"hold":       decode(func(n int) (any, error) { u.hold(n); return nil, nil }),
		"cancel":     decode(func(n int) (any, error) { return u.cancelAll(n) }),
		"stats":      decode(func(struct{}) (any, error) { return u.front.stats() }),
	})
	if u.front != nil {
		err = errors.Join(err, u.front.client.Close())
	}
	return err
}

func (u *user) dial(r dialRequest) (_ any, err error) {
	u.front, err = dialCaller(u.place.Below, r.Front, r.Habits)
	return nil, err
}

// load returns when each request has ended.
func (u *user) load(r loadRequest) []*ended {
	rng := rand.New(rand.NewPCG(r.Seed, 0x6c61796572)) // arrivals of their own, for the same seed in all arms
	var all []*ended
	var over sync.WaitGroup
	begin := clock.Now()
	for due := begin; ; {
		due = due.Add(time.Duration(rng.ExpFloat64() * float64(time.Second) / r.PerS))
		if due.Sub(begin) > r.Duration {
			break
		}
		time.Sleep(due.Sub(clock.Now())) // after a delay of its own it makes what it owes
		e, mark := &ended{Due: due}, uint64(len(all)+1)
		all = append(all, e)
		over.Go(func() {
			err := u.front.call(context.Background(), mark)
			e.Finished, e.OK = clock.Now(), err == nil
			if err != nil {
				e.Error = err.Error()
			}
		})
	}
	over.Wait()
	return all
}

// hold makes calls that wait to be cancelled.
func (u *user) hold(n int) {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel, u.held = cancel, make(chan error, n)
	for i := range n {
		go func() { u.held <- u.front.call(ctx, uint64(i+1)) }()
	}
}

// cancelAll cancels them, and returns when it did. Each must end as cancelled.
func (u *user) cancelAll(n int) (at clock.Time, err error) {
	at = clock.Now()
	u.cancel()
	for range n {
		if ended := <-u.held; !errors.Is(ended, context.Canceled) {
			err = errors.Join(err, errNotCancelled, ended)
		}
	}
	return at, err
}

var errNotCancelled = errors.New("a call that was cancelled ended otherwise")
