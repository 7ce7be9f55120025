package middleware

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// newLock is a control with one permit, on the clock of a bubble, in which nothing may read from a pipe.
func newLock(slo time.Duration) *Control {
	return New(Config{
		SLO: slo, Permits: 1, Log: slog.New(slog.DiscardHandler),
		Now:   func() clock.Time { return clock.Time(time.Now().UnixNano()) },
		Delay: func(clock.Time) time.Duration { return 0 },
	})
}

// A lock that is held for 10 ms. Whoever has the time waits for it, in order; who has not is told at once, and not at the end of his time.
func TestEnterALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := func() int { return int(time.Since(began).Milliseconds()) }
		c := newLock(time.Second)
		defer c.Close()
		hold := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			p, err := c.Enter(ctx)
			if err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
			p.Done(true)
			return nil
		}
		if err := hold(time.Second); err != nil || at() != 10 { // now it is known how long it is held
			t.Fatalf("the first one: %v after %d ms", err, at())
		}
		ended := make(chan int, 3)
		for range 3 {
			go func() {
				if err := hold(time.Second); err != nil {
					t.Error(err)
				}
				ended <- at()
			}()
			synctest.Wait()
		}
		err := hold(25 * time.Millisecond) // behind three that take 10 ms each
		refused, ok := errors.AsType[*RefusedError](err)
		if !ok || refused.Verdict.Reason != admit.ReasonExpired || !errors.Is(err, context.DeadlineExceeded) || at() != 10 {
			t.Errorf("who has no time is told %v after %d ms, want a refusal at once", err, at())
		}
		for _, want := range []int{20, 30, 40} {
			if got := <-ended; got != want {
				t.Errorf("one ends after %d ms, want %d", got, want)
			}
		}
		if s := c.Stats(); s.Running != 0 || s.Waiting != 0 {
			t.Errorf("%d hold it and %d wait in the end", s.Running, s.Waiting)
		}
		if err := c.Audit(); err != nil {
			t.Error(err)
		}
	})
}

// Whose caller leaves while he waits, leaves the line; and who has left already does not get in.
func TestEnterIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLock(time.Hour)
		defer c.Close()
		p, err := c.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := c.Enter(ctx)
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's", err)
		}
		p.Done(true)
		if _, err := c.Enter(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's", err)
		}
		if p, err = c.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Done(true)
		if err := c.Audit(); err != nil {
			t.Error(err)
		}
	})
}
