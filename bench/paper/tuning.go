package paper

import (
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
)

// Tuning is the settings of a point's scheme; those of all others are zero. A zero setting is the scheme's own default.
type Tuning struct {
	Breakwater BreakwaterTuning
	DAGOR      DAGORTuning
	SEDA       SEDATuning
}

// BreakwaterTuning is for the laws with credits.
type BreakwaterTuning struct {
	Alpha, Beta                float64       // additive increase per client and RTT, multiplicative decrease; shares of 1
	TargetDelay, DropThreshold time.Duration // of the server's queue
}

// DAGORTuning is for DAGOR.
type DAGORTuning struct {
	Threshold   time.Duration // of the averaged queueing delay
	Alpha, Beta float64       // by how much the cut falls and rises; shares of 1
}

// SEDATuning is for SEDA.
type SEDATuning struct {
	Target time.Duration // of the p99
	AdjI   float64       // additive increase of a client's rate
	AdjD   float64       // divisor of the decrease
}

// sedaClients is the number of clients that SEDA's additive increase was tuned for. The paper tuned it anew for each number; the
// sum over clients is what the server sees, so a client's share scales with the inverse.
const sedaClients = 1000

// workClass is a kind of work that the paper tuned for.
type workClass struct {
	service                    time.Duration
	targetDelay, dropThreshold time.Duration // of the artifact: constants in its code, near 0.4 and 0.8 of the SLO
	dagor                      [3]time.Duration
	seda                       SEDATuning
}

// workClasses are the artifact's settings. DAGOR's thresholds are by service shape. Those of memcached are not published: Breakwater's
// follow the paper's rule, and DAGOR's and SEDA's have the share of the SLO that they have at 1 us.
var workClasses = []workClass{
	{time.Microsecond, 45 * time.Microsecond, 90 * time.Microsecond,
		shapes(30, 30, 20), SEDATuning{50 * time.Microsecond, 120, 1.04}},
	{10 * time.Microsecond, 80 * time.Microsecond, 160 * time.Microsecond,
		shapes(60, 70, 80), SEDATuning{80 * time.Microsecond, 40, 1.04}},
	{100 * time.Microsecond, 500 * time.Microsecond, 1000 * time.Microsecond,
		shapes(500, 500, 500), SEDATuning{720 * time.Microsecond, 10, 1.3}},
	{memcachedService, 20 * time.Microsecond, 40 * time.Microsecond,
		shapes(14, 14, 14), SEDATuning{23 * time.Microsecond, 120, 1.04}},
}

// shapes indexes thresholds in us by workload.Shape.
func shapes(constant, exponential, bimodal time.Duration) (d [3]time.Duration) {
	d[workload.Constant] = constant * time.Microsecond
	d[workload.Exponential] = exponential * time.Microsecond
	d[workload.Bimodal] = bimodal * time.Microsecond
	return d
}

// The published settings.
const (
	breakwaterAlpha = 0.001
	breakwaterBeta  = 0.02
	targetShare     = 0.4 // of the SLO
	dagorAlpha      = 0.05
	dagorBeta       = 0.01
)

// tuned returns the published settings of a scheme. Ours and those that the paper did not tune keep their defaults: to tune ours by
// the paper's work would hide what it does untuned.
func tuned(s Scheme, service workload.ServiceTime, slo time.Duration, clients int) (t Tuning) {
	for _, c := range workClasses {
		if c.service != service.Mean {
			continue
		}
		switch s {
		case BreakwaterArtifact:
			t.Breakwater = BreakwaterTuning{breakwaterAlpha, breakwaterBeta, c.targetDelay, c.dropThreshold}
		case BreakwaterPaper:
			target := time.Duration(targetShare * float64(slo))
			t.Breakwater = BreakwaterTuning{breakwaterAlpha, breakwaterBeta, target, 2 * target}
		case DAGOR:
			t.DAGOR = DAGORTuning{c.dagor[service.Shape], dagorAlpha, dagorBeta}
		case SEDA:
			t.SEDA = c.seda
			t.SEDA.AdjI *= sedaClients / float64(clients)
		}
	}
	return t
}
