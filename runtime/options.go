package runtime

import (
	"context"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/wire"
)

// What a client does about calls that fail; see ClientConfig. The settings are those of package credit/client, where each says where it is from.
type (
	// RetryConfig says which calls are tried again, how often, when, and from what budget.
	RetryConfig = client.RetryConfig
	// BackoffConfig is the wait before a call is tried again.
	BackoffConfig = client.BackoffConfig
	// BudgetConfig is what attempts beyond the first are paid from.
	BudgetConfig = client.BudgetConfig
	// HedgeConfig has a second request sent beside a slow one.
	HedgeConfig = client.HedgeConfig
	// ThrottleConfig refuses calls locally while the server refuses or loses most of them.
	ThrottleConfig = client.ThrottleConfig
	// BreakerConfig refuses all calls for a while when too many have failed.
	BreakerConfig = client.BreakerConfig
)

// Criticality says how much a call matters when load is shed.
type Criticality = wire.Criticality

// The levels of criticality. What says nothing counts as Critical.
const (
	Sheddable     = wire.Sheddable     // the first to be shed: batch work that is done again later
	SheddablePlus = wire.SheddablePlus // batch work that is expected to be done now
	Critical      = wire.Critical      // what a user waits for
	CriticalPlus  = wire.CriticalPlus  // the last to be shed: what users cannot do without
)

// callOptions are what a context says of the calls that are made with it.
type callOptions struct {
	criticality        Criticality
	repeatable, noWait bool
	left               uint8
}

// optionsKey is the key of a context's *callOptions.
type optionsKey struct{}

// optionsOf reads what a context says of calls.
func optionsOf(ctx context.Context) (o callOptions) {
	if p, ok := ctx.Value(optionsKey{}).(*callOptions); ok {
		o = *p
	}
	return o
}

func with(ctx context.Context, o callOptions) context.Context {
	return context.WithValue(ctx, optionsKey{}, &o)
}

// WithCriticality has calls with the context say how much they matter. A handler's context says what its request says, so that the calls that it makes matter as much.
func WithCriticality(ctx context.Context, c Criticality) context.Context {
	o := optionsOf(ctx)
	o.criticality = c
	return with(ctx, o)
}

// Repeatable marks calls with the context as repeatable: running one twice does no more than running it once, as with a read, or a write of a whole value. They are tried again,
// and hedged, as the client's configuration says. It is not inherited by the calls that a handler makes: each has to be marked where it is known to be.
func Repeatable(ctx context.Context) context.Context {
	o := optionsOf(ctx)
	o.repeatable = true
	return with(ctx, o)
}

// NoWait has calls with the context fail with ErrNoCredit at once, where others wait for a credit: for callers who have something better to do than to wait, such as
// to answer in a cheaper way. The server is told of the demand all the same.
func NoWait(ctx context.Context) context.Context {
	o := optionsOf(ctx)
	o.noWait = true
	return with(ctx, o)
}

// CriticalityOf is what calls with the context would say; zero = nothing.
func CriticalityOf(ctx context.Context) Criticality { return optionsOf(ctx).criticality }

// Inherit has an asynchronous call say what the context says: deadline, criticality, attempts left, and whether it is repeatable and may wait. The end of the
// context does not end the call; that is what Session.Call is for.
func (c *Call) Inherit(ctx context.Context) {
	o := optionsOf(ctx)
	c.Criticality, c.Repeatable, c.NoWait, c.AttemptsLeft = o.criticality, o.repeatable, o.noWait, o.left
	c.Deadline = deadlineOf(ctx)
}

// guard is what the sessions of a client share about calls that fail; nil = nothing is done about them.
func (c *ClientConfig) guard() *client.Guard {
	if c.Retry.Off && c.Hedge.Percentile == 0 && c.Throttle.K == 0 && c.Breaker.Failures == 0 {
		return nil
	}
	return client.NewGuard(client.GuardConfig{Retry: c.Retry, Hedge: c.Hedge, Throttle: c.Throttle, Breaker: c.Breaker})
}
