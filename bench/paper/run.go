package paper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// Report is everything that came out.
type Report struct {
	Plan        *Plan
	Results     []Result     // of Plan.Points
	Comparisons []Comparison // of Plan.Cells
	Summaries   []Summary
	Recoveries  []RecoveryPair // empty without F7
	Checks      []Check
	Judged      int    // comparisons that have a tolerance
	Within      int    // of those
	Passed      bool   // all of them are within, and all checks are met
	Verdict     string // one plain sentence
}

// Run simulates what the options ask for, prints each figure when all of its runs are there, and says at the end what matched. The order
// of what is printed is that of the plan, whatever ends first, so the same options print the same bytes.
//
// An error means that it could not be simulated or shown: one of [ErrOptions] before anything ran, ctx's when that ended, otherwise the
// runner's or the output's. A figure that does not match is no error; see Report.Passed.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	plan, err := NewPlan(o.Figures, o.Schemes, o.Size)
	if err != nil {
		return nil, err
	}
	s := newShow(o, plan)
	defer s.close()
	if err := s.begin(); err != nil {
		return nil, err
	}
	results, err := drive(ctx, o.Runner, plan.Points, o.Seed, o.Parallel, s.ready)
	if err != nil {
		return nil, err
	}
	s.close()
	r := newReport(plan, results)
	if err := s.end(r); err != nil {
		return nil, err
	}
	return r, s.page(r)
}

// newReport compares and judges.
func newReport(plan *Plan, results []Result) *Report {
	r := &Report{Plan: plan, Results: results, Comparisons: compare(plan.Cells, results), Recoveries: recoveries(plan, results)}
	r.Summaries = summarize(r.Comparisons)
	r.Checks = slices.Concat(checkOrder(r.Comparisons), checkBest(r.Comparisons), checkRecovery(r.Recoveries, plan.Size),
		checkCollapse(r.Comparisons, plan))
	for _, s := range r.Summaries {
		r.Judged += s.Judged
		r.Within += s.Within
	}
	met := 0
	for _, c := range r.Checks {
		if c.Met {
			met++
		}
	}
	r.Passed = r.Within == r.Judged && met == len(r.Checks)
	r.Verdict = fmt.Sprintf("%d of %d judged values of %s are within their tolerance of the published figures, and %d of %d checks of order, "+
		"recovery and collapse are met.", r.Within, r.Judged, BreakwaterArtifact, met, len(r.Checks))
	return r
}

// show prints a run as it goes.
type show struct {
	options  Options
	plan     *Plan
	progress *report.Progress // nil without a place for it
	out      io.Writer
	json     *report.JSONLines // nil for tables
	printed  int               // figures
	figures  []planned
}

// planned is a figure of the plan.
type planned struct {
	figure
	cells []Cell
	needs int // so many points, from the first on, hold all that the cells read
}

func newShow(o Options, plan *Plan) *show {
	s := &show{options: o, plan: plan, out: o.Out}
	if o.Progress != nil {
		s.progress = report.NewProgress(o.Progress, int64(len(plan.Points)), "simulating")
		s.out = s.progress.Around(o.Out)
	}
	if o.JSON {
		s.json = report.NewJSONLines(s.out, "stillwater.sim.paper.v1")
	}
	rest := plan.Cells
	for len(rest) > 0 {
		f := planned{}
		for len(f.cells) < len(rest) && rest[len(f.cells)].Figure == rest[0].Figure {
			f.needs = max(f.needs, rest[len(f.cells)].Point+1)
			f.cells = rest[:len(f.cells)+1]
		}
		f.figure = figures[slices.IndexFunc(figures, func(o figure) bool { return o.name == rest[0].Figure })]
		s.figures = append(s.figures, f)
		rest = rest[len(f.cells):]
	}
	return s
}

// close takes the bar away.
func (s *show) close() {
	if s.progress != nil {
		s.progress.Close()
	}
}

// say prints a sentence for people; in JSON mode that is beside the bar, or nowhere.
func (s *show) say(format string, args ...any) error {
	w := s.out
	if s.json != nil {
		if s.options.Progress == nil {
			return nil
		}
		w = s.progress.Around(s.options.Progress)
	}
	_, err := fmt.Fprintf(w, format+"\n", args...)
	return printed(err)
}

// printed says what failed.
func printed(err error) error {
	if err != nil {
		return fmt.Errorf("print the comparison: %w", err)
	}
	return nil
}

// begin prints what holds for all that follows.
func (s *show) begin() error {
	var requests float64
	for _, p := range s.plan.Points {
		requests += p.Requests()
	}
	costs := ""
	if s.options.Costs != "" {
		costs = " Costs, the same for all: " + strings.TrimSuffix(s.options.Costs, ".") + "."
	}
	return s.say("%d runs, %.1f million requests after warm-up, for %d figures; size %s, seed %d.%s", len(s.plan.Points),
		requests/1e6, len(s.figures), s.options.Size.Name, s.options.Seed, costs)
}

// ready prints the figures whose runs are all there.
func (s *show) ready(results []Result, prefix, done int) error {
	if s.progress != nil {
		if done < len(s.plan.Points) {
			s.progress.Describe("simulating " + s.plan.Points[min(prefix, len(s.plan.Points)-1)].Figure)
		}
		s.progress.Set(int64(done))
	}
	for s.printed < len(s.figures) && s.figures[s.printed].needs <= prefix {
		f := s.figures[s.printed]
		if err := s.figure(f.figure, compare(f.cells, results), results); err != nil {
			return err
		}
		s.printed++
	}
	return nil
}

// figure prints one figure in the form that was asked for.
func (s *show) figure(f figure, all []Comparison, results []Result) error {
	if s.json != nil {
		return s.objects(f, all, results)
	}
	return s.tables(f, all, results)
}

// end prints what all figures come to. In JSON mode only the sentence is left to say.
func (s *show) end(r *Report) error {
	if s.json == nil {
		if err := s.summary(r); err != nil {
			return err
		}
	}
	return s.say("\n%s", r.Verdict)
}

// page writes the page, if one was asked for.
func (s *show) page(r *Report) error {
	if s.options.HTML == "" {
		return nil
	}
	f, err := os.Create(s.options.HTML)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if err := errors.Join(r.page(s.options).WriteHTML(f), f.Close()); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return s.say("The curves are in %s.", s.options.HTML)
}
