package simulate

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/baseline"
)

// DAGOR changes settings of DAGOR.
type DAGOR struct {
	Threshold Duration `json:"threshold,omitempty"` // delay from which the server counts as overloaded
	Alpha     float64  `json:"alpha,omitempty"`     // share of the cut that it loses then
	Beta      float64  `json:"beta,omitempty"`      // share of all priorities that it gains else
}

// SEDA changes settings of SEDA.
type SEDA struct {
	Target Duration `json:"target,omitempty"` // of the p99
	AdjI   float64  `json:"adj_i,omitempty"`  // step up of one client, in requests per second
	AdjD   float64  `json:"adj_d,omitempty"`  // divisor down
	Cold   bool     `json:"cold,omitempty"`   // clients begin without a token, and with a few requests a second
}

// Pause is a time in which a CPU of the server does nothing, again and again, each by itself.
type Pause struct {
	Every Duration `json:"every"` // on average, from one to the next of a CPU
	For   Duration `json:"for"`
}

// tuning is the law as the schemes take it.
func (l Law) tuning() baseline.Tuning {
	return baseline.Tuning{
		Alpha: l.Alpha, Beta: l.Beta, Target: time.Duration(l.Target), DropThreshold: time.Duration(l.DropThreshold),
		NoCredits: l.NoCredits, NoAQM: l.NoAQM, NoSpeculation: l.NoSpeculation, Quiet: l.Quiet,
		DAGOR: baseline.DAGORTuning{Threshold: time.Duration(l.DAGOR.Threshold), Alpha: l.DAGOR.Alpha, Beta: l.DAGOR.Beta},
		SEDA:  baseline.SEDATuning{Target: time.Duration(l.SEDA.Target), AdjI: l.SEDA.AdjI, AdjD: l.SEDA.AdjD, Cold: l.SEDA.Cold},
	}
}
