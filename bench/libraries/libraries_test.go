package libraries

import (
	"sync"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	xrate "golang.org/x/time/rate"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// The bucket refuses about half of what a loop of nanoseconds asks for: neither answer may be the only one measured.
const rate, burst = 4_000_000, 1000

var sink bool

// BenchmarkBucket is one decision of a token bucket.
func BenchmarkBucket(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		bucket, now := admit.NewBucket(rate, burst), clock.Now()
		for i := 0; b.Loop(); i++ {
			now += clock.Time(time.Second / (2 * rate)) // twice the rate
			sink, _ = bucket.Take(now, 1)
		}
	})
	b.Run("ours, with clock and mutex", func(b *testing.B) {
		bucket, mu := admit.NewBucket(rate, burst), sync.Mutex{}
		for b.Loop() {
			mu.Lock()
			sink, _ = bucket.Take(clock.Now(), 1)
			mu.Unlock()
		}
	})
	b.Run("x/time/rate", func(b *testing.B) {
		limiter, now := xrate.NewLimiter(rate, burst), time.Now()
		for b.Loop() {
			now = now.Add(time.Second / (2 * rate))
			sink = limiter.AllowN(now, 1)
		}
	})
	b.Run("failsafe-go", func(b *testing.B) {
		limiter := ratelimiter.NewBursty[any](burst, burst*time.Second/rate)
		for b.Loop() {
			sink = limiter.TryAcquirePermit()
		}
	})
}

// BenchmarkBreaker is a closed circuit breaker over a window of two seconds: one call let through, and its success.
func BenchmarkBreaker(b *testing.B) {
	const window, share, calls = 2 * time.Second, 0.5, 20
	b.Run("ours", func(b *testing.B) {
		breaker, now := client.NewBreaker(client.BreakerConfig{Failures: share, Calls: calls, Window: window}), clock.Now()
		for b.Loop() {
			now += clock.Time(time.Microsecond)
			permit, ok := breaker.Allow(now)
			breaker.Report(now, permit, client.ReportSuccess, 0)
			sink = ok
		}
	})
	b.Run("ours, with clock and mutex", func(b *testing.B) {
		breaker, mu := client.NewBreaker(client.BreakerConfig{Failures: share, Calls: calls, Window: window}), sync.Mutex{}
		for b.Loop() {
			mu.Lock()
			permit, ok := breaker.Allow(clock.Now())
			mu.Unlock()
			mu.Lock()
			breaker.Report(clock.Now(), permit, client.ReportSuccess, 0)
			mu.Unlock()
			sink = ok
		}
	})
	b.Run("failsafe-go", func(b *testing.B) {
		breaker := circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(share, calls, window).Build()
		for b.Loop() {
			sink = breaker.TryAcquirePermit()
			breaker.RecordSuccess()
		}
	})
}

// Each of them refuses what is beyond its burst, or the benchmark compares nothing.
func TestBucketsRefuse(t *testing.T) {
	ours, limiter, other := admit.NewBucket(1, burst), xrate.NewLimiter(1, burst), ratelimiter.NewBursty[any](burst, time.Hour)
	now, then := clock.Time(time.Second), time.Now()
	for i := range burst + 1 {
		want := i < burst
		if ok, _ := ours.Take(now, 1); ok != want {
			t.Errorf("ours, request %d: %v", i, ok)
		}
		if limiter.AllowN(then, 1) != want {
			t.Errorf("x/time/rate, request %d: %v", i, !want)
		}
		if other.TryAcquirePermit() != want {
			t.Errorf("failsafe-go, request %d: %v", i, !want)
		}
	}
}
