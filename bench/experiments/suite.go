package experiments

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/bench/suite"
)

// What the experiments are made of.
type (
	Experiment = suite.Experiment // one experiment
	Table      = suite.Table      // an experiment with its results
	Row        = suite.Row        // one line of a table
	Sample     = suite.Sample     // what one run measured
	Check      = suite.Check      // a part of the acceptance
	Size       = suite.Size       // how much is run
	Options    = suite.Options    // what to run and where to show it

	job    = suite.Job
	chart  = suite.Chart
	course = suite.Course
	kind   = suite.Kind
)

// ErrOptions says that Options ask for what cannot be done.
var ErrOptions = suite.ErrOptions

// Schema names the objects of JSON.
const Schema = "stillwater.experiments.v1"

// Experiments are all of them, in the order of their numbers.
func Experiments() []*Experiment {
	return []*Experiment{e6(), e12(), e13(), e14(), e15(), e16(), e17(), e18(), e21(), e22()}
}

// Run runs the experiments, and prints each as soon as it and those before it are done.
func Run(ctx context.Context, o Options) ([]*Table, error) {
	s := suite.Suite{
		Title: "Experiments of overload control", Schema: Schema, Arm: "scheme", Conditions: costs(), Kinds: kinds, Experiments: Experiments(),
		Line: figSLO, LineLabel: "SLO",
	}
	return s.Run(ctx, o)
}

// Small is what a test runs: a seed, and few points.
func Small() Size { return Size{Name: "small", Calls: 25_000, Seeds: 1, Warmup: 30 * time.Millisecond} }

// Full is for claims: half a million calls at each point, in ten runs of a seed each.
func Full() Size {
	return Size{Name: "full", Calls: 50_000, Seeds: 10, Warmup: 100 * time.Millisecond, Full: true}
}

func kindOf(figure string) kind { return kinds.Of(figure) }

func bound(text string, rows []*Row, figure string, limit float64, atLeast bool) Check {
	return kinds.Bound(text, rows, figure, limit, atLeast)
}

func collapse(rows []*Row, figure string, limit float64) Check {
	return kinds.Collapse(rows, figure, limit)
}

func only(rows []*Row, f func(*Row) bool) []*Row { return suite.Only(rows, f) }

// costs is the one set of them, in words.
func costs() string {
	c := simulate.PaperCosts
	return fmt.Sprintf("costs of a message: receive %v, send %v, reject %v, credit %v", us(c.Receive), us(c.Send), us(c.Reject), us(c.Credit))
}

func us(d simulate.Duration) string {
	return strconv.FormatFloat(float64(d)/1e3, 'f', -1, 64) + " us"
}
