package client

import "time"

// BackoffConfig sets the wait before an attempt is repeated. Zero values mean the documented defaults.
type BackoffConfig struct {
	Base time.Duration // the first wait is below this; 0 = 500 us
	Max  time.Duration // no wait is above this, but for what the server asks for; 0 = 50 ms
}

// Defaults of a backoff: a few queueing delays of a server of microseconds, and a few of one of milliseconds.
const (
	backoffBaseDefault = 500 * time.Microsecond
	backoffMaxDefault  = 50 * time.Millisecond
	backoffDoublings   = 30 // after which it is certainly above any Max
)

func (c BackoffConfig) withDefaults() BackoffConfig {
	if c.Base <= 0 {
		c.Base = backoffBaseDefault
	}
	if c.Max <= 0 {
		c.Max = backoffMaxDefault
	}
	return c
}

// Wait is how long to wait before repetition number n (1 is the first), by a random number from [0, 1): exponential backoff with full jitter, any time
// from nothing to Base * 2^(n-1), but at most Max (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015: of 100 contenders full jitter makes
// the fewest calls). What the server asks for comes before it, so that who was refused together does not come back together.
func (c BackoffConfig) Wait(n int, retryAfter time.Duration, draw float64) time.Duration {
	c = c.withDefaults()
	ceiling := c.Max
	if doublings := min(max(n, 1)-1, backoffDoublings); c.Base < c.Max>>doublings {
		ceiling = c.Base << doublings
	}
	return max(retryAfter, 0) + time.Duration(draw*float64(ceiling))
}
