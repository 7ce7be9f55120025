package toolbox

import (
	"context"
	"fmt"
	"time"

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

	job   = suite.Job
	chart = suite.Chart
)

// course has the goodput drawn over time, with the time of the trouble. Series are by the second.
func course(from, to time.Duration, what string) *suite.Course {
	return &suite.Course{Every: time.Second, Trouble: func(*Row, time.Duration) (time.Duration, time.Duration, string) { return from, to, what }}
}

// ErrOptions says that Options ask for what cannot be done.
var ErrOptions = suite.ErrOptions

// Schema names the objects of JSON.
const Schema = "stillwater.toolbox.v1"

// Experiments are all of them, in the order of their numbers.
func Experiments() []*Experiment {
	return []*Experiment{e1(), e2(), e3(), e4(), e5(), e7(), e8(), e9(), e10(), e11(), e19(), e20(), e23()}
}

// Run runs the experiments, and prints each as soon as it and those before it are done.
func Run(ctx context.Context, o Options) ([]*Table, error) {
	s := suite.Suite{
		Title: "The admission toolbox", Schema: Schema, Arm: "arm", Conditions: "a message costs 0.88 us to receive, 0.88 us to send, 0.44 us to refuse",
		Kinds: kinds, Experiments: Experiments(),
	}
	return s.Run(ctx, o)
}

// Play runs one line of an experiment, with one seed: an arm at a point, as the table names them.
func Play(ctx context.Context, id, point, arm string, size Size, seed uint64) (Sample, error) {
	for _, e := range Experiments() {
		if e.ID != id {
			continue
		}
		for _, j := range e.Jobs(size) {
			if j.At == point && j.Arm == arm {
				return j.Play(ctx, seed)
			}
		}
	}
	return Sample{}, fmt.Errorf("%w: %s has no %q at %q", ErrOptions, id, arm, point)
}

// Small is what a test runs: one seed, and less time where a minute shows no more.
func Small() Size { return Size{Name: "small", Seeds: 1} }

// Full is for claims: all points, three runs of a seed each.
func Full() Size { return Size{Name: "full", Seeds: 3, Full: true} }

// The words of all tables: what is not controlled, and what this project does.
const (
	armNone = "none"
	armOurs = "ours"
)

func bound(text string, rows []*Row, figure string, limit float64, atLeast bool) Check {
	return kinds.Bound(text, rows, figure, limit, atLeast)
}

func collapse(rows []*Row, figure string, limit float64) Check {
	return kinds.Collapse(rows, figure, limit)
}

func only(rows []*Row, f func(*Row) bool) []*Row { return suite.Only(rows, f) }
