//go:build linux

package prove

import (
	"context"
	"errors"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Work is what each request of the overload experiments asks for.
var Work = workload.ServiceTime{Shape: workload.Constant, Mean: 10 * time.Microsecond}

// drainLimit is how long calls without a deadline are waited for: longer than the runtime keeps any.
const drainLimit = 30 * time.Second

// capacityOutstanding keeps the server always busy: four answers share a kick, and as many more are under way.
const capacityOutstanding = 16

// Capacity measures how many requests per second of that work the server can do, without overload control.
func Capacity(ctx context.Context, p *child.Pair, window time.Duration, seed uint64) (perS float64, err error) {
	if _, err := p.ServeAndDial(ctx, child.ServeRequest{Scheme: sw.SchemeNone}, 1); err != nil {
		return 0, err
	}
	plan := load.Plan{ServiceTime: Work, Warmup: window / 4, Duration: window, Seed: seed}
	result, err := Closed(ctx, p, target.MethodSpin, capacityOutstanding, plan)
	return result.ThroughputPerS, err
}

// Closed runs a closed loop of calls without a deadline. A run that is not to be believed is an error, since its figures go into a verdict.
func Closed(ctx context.Context, p *child.Pair, method string, outstanding int, plan load.Plan) (load.Result, error) {
	plan.BucketWidth, plan.DrainLimit = -1, drainLimit
	result, err := p.Closed(ctx, method, load.ClosedLoop{Plan: plan, Outstanding: outstanding})
	return result, errors.Join(err, result.Err())
}
