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

// DrainLimit is how long calls without a deadline are waited for: longer than the runtime keeps any.
const DrainLimit = 30 * time.Second

// capacityOutstanding keeps the server always busy: four answers share a kick, and as many more are under way.
const capacityOutstanding = 16

// Capacity measures how many requests per second of that work the server can do, without overload control.
func Capacity(ctx context.Context, p *child.Pair, window time.Duration, seed uint64) (perS float64, err error) {
	if _, err := p.ServeAndDial(ctx, child.ServeRequest{Control: sw.NoControl}, 1); err != nil {
		return 0, err
	}
	result, err := p.Closed(ctx, target.MethodSpin, load.ClosedLoop{
		Plan:        load.Plan{ServiceTime: Work, Warmup: window / 4, Duration: window, BucketWidth: -1, DrainLimit: DrainLimit, Seed: seed},
		Outstanding: capacityOutstanding,
	})
	return result.ThroughputPerS, errors.Join(err, result.Err())
}
