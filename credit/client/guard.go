package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// RetryConfig says which calls are tried again. The zero value tries those again that are marked repeatable, within a budget.
type RetryConfig struct {
	Off bool // nothing is tried again; who hedges still has Attempts and Budget
	// Attempts bounds those of one call, hedges included; 0 = 3, at most 10. 1 = one.
	Attempts int
	Backoff  BackoffConfig
	Budget   BudgetConfig
	// Timeout is how long an attempt may go unanswered, from when it is first sent, before another one takes its place; 0 = until the call's deadline. It
	// ends nothing that will not be tried again.
	Timeout time.Duration
	// Refused has calls tried again that are not marked repeatable, if the server refused them before they ran.
	Refused bool
}

// Bounds of the attempts of one call.
const (
	attemptsDefault = 3  // SRE book, chapter 21: "no more than three times"
	attemptsMax     = 10 // what is not answered after that is no accident
)

// GuardConfig sets a [Guard]: what a client does about calls that fail. The zero value tries repeatable calls again, and has neither hedges, nor throttle, nor breaker.
type GuardConfig struct {
	Retry    RetryConfig
	Hedge    HedgeConfig
	Throttle ThrottleConfig
	Breaker  BreakerConfig
}

// Guard is what all calls to one server share, over all sessions of a client there: throttle, breaker, budget, and what is known of latencies. It has one owner.
type Guard struct {
	retry    RetryConfig
	throttle Throttle
	breaker  Breaker
	budget   Budget
	hedge    Hedge
	counts   *AttemptCounts
	own      AttemptCounts
}

// AttemptCounts count what guards did.
type AttemptCounts struct {
	Retries          uint64 `json:"call_retry_count"`        // attempts after one that had failed
	Hedges           uint64 `json:"hedge_count"`             // second requests beside a slow one
	HedgesWon        uint64 `json:"hedge_won_count"`         // of these: answered first
	BudgetRefused    uint64 `json:"budget_refused_count"`    // retries and hedges that the budget had nothing for
	RetriesForbidden uint64 `json:"retry_forbidden_count"`   // not tried again because the server said so
	Throttled        uint64 `json:"locally_throttled_count"` // attempts refused by the throttle
	BreakerRefused   uint64 `json:"breaker_refused_count"`   // attempts refused by the breaker
	BreakerOpened    uint64 `json:"breaker_opened_count"`    // times that a breaker opened
}

// Add makes the counts those of two together.
func (c *AttemptCounts) Add(other *AttemptCounts) {
	c.Retries += other.Retries
	c.Hedges += other.Hedges
	c.HedgesWon += other.HedgesWon
	c.BudgetRefused += other.BudgetRefused
	c.RetriesForbidden += other.RetriesForbidden
	c.Throttled += other.Throttled
	c.BreakerRefused += other.BreakerRefused
	c.BreakerOpened += other.BreakerOpened
}

// NewGuard makes a guard.
func NewGuard(cfg GuardConfig) *Guard {
	if cfg.Retry.Attempts <= 0 {
		cfg.Retry.Attempts = attemptsDefault
	}
	cfg.Retry.Attempts = min(cfg.Retry.Attempts, attemptsMax)
	g := &Guard{
		retry: cfg.Retry, throttle: NewThrottle(cfg.Throttle), breaker: NewBreaker(cfg.Breaker), budget: NewBudget(cfg.Retry.Budget), hedge: NewHedge(cfg.Hedge),
	}
	g.counts = &g.own
	return g
}

// CountIn has the guard count there from now on, where others may count too.
func (g *Guard) CountIn(c *AttemptCounts) { g.counts = c }

// Counts reads what it did.
func (g *Guard) Counts() AttemptCounts { return *g.counts }

// Budget reads the books of its budget.
func (g *Guard) Budget() BudgetBooks { return g.budget.Books() }

// Breaker is the state of its breaker.
func (g *Guard) Breaker() BreakerState { return g.breaker.State() }

// Refusal is why a guard lets an attempt not through.
type Refusal uint8

// The refusals.
const (
	RefusalNone      Refusal = iota
	RefusalThrottled         // by the throttle
	RefusalBreaker           // by the breaker
)

// admit asks throttle and breaker for one attempt.
func (g *Guard) admit(now clock.Time, draw float64) (Permit, Refusal) {
	if !g.throttle.Admit(now, draw) {
		g.counts.Throttled++
		return Permit{}, RefusalThrottled
	}
	p, ok := g.breaker.Allow(now)
	if !ok {
		g.counts.BreakerRefused++
		return Permit{}, RefusalBreaker
	}
	return p, RefusalNone
}

// learn has throttle, breaker and hedge know how an attempt ended.
func (g *Guard) learn(now clock.Time, p Permit, e Ended, draw float64) {
	report := ReportNothing
	switch e.End {
	case EndAnswered, EndUnavailable: // the server does its part
		report = ReportSuccess
		g.throttle.Answered(now, true)
		g.hedge.Sample(e.Latency)
	case EndRefused, EndLost:
		report = ReportFailure
		g.throttle.Answered(now, false)
	}
	before := g.breaker.State()
	g.breaker.Report(now, p, report, draw)
	if before != BreakerOpen && g.breaker.State() == BreakerOpen {
		g.counts.BreakerOpened++
	}
}
