package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/paper"
	"github.com/stillwater-rpc/stillwater/bench/paper/runner"
)

// simPaperFlags are the flags of sim paper.
type simPaperFlags struct {
	figures, schemes []string
	size             string
	seed             uint64
	parallel         int
	html             string
	windows          bool
}

const simPaperLong = `Draw the figures of the Breakwater paper (Cho et al., OSDI 2020) again from simulated runs, of all schemes side by side,
and print ours beside the published figure at every point that was read off the paper's plots.

The server is the paper's machine, with one set of constants for all points and schemes; docs/simulator.md says which, how they were set, and how far
the result is from the published figures. Exits with 3 if a value is outside its tolerance, or a check of order, recovery or collapse is not met.`

func newSimPaper(c *cli) *cobra.Command {
	f := &simPaperFlags{}
	cmd := &cobra.Command{
		Use:     "paper",
		Short:   "The figures of the Breakwater paper, ours beside the published ones",
		Long:    simPaperLong,
		Example: "  stillwater sim paper --figures F3,F9 --size small\n  stillwater sim paper --html paper.html",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return simPaper(c, f) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.figures, "figures", nil, "`names` of figures, of "+strings.Join(paper.Figures(), ", ")+"; none = all")
	flags.StringSliceVar(&f.schemes, "schemes", nil, "`names` of schemes to run; none = all. Checks that need others are left out")
	flags.StringVar(&f.size, "size", "full", "`size` of each run: full, to compare, or small, for a quick look that judges nothing rightly")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of arrivals, service times and clients")
	flags.IntVar(&f.parallel, "parallel", 0, "runs at the same time; 0 = as many as there are CPUs")
	flags.StringVar(&f.html, "html", "", "write a page with the curves and the residuals into this `file`")
	flags.BoolVar(&f.windows, "windows", false, "in text, each window of F7 instead of its stages")
	return cmd
}

// options are the flags for package paper.
func (f *simPaperFlags) options(c *cli) (paper.Options, error) {
	o := paper.Options{
		Runner: runner.Runner{}, Costs: runner.Costs(), Figures: f.figures, Seed: f.seed, Parallel: f.parallel, HTML: f.html, Windows: f.windows,
		Out: c.stdout, JSON: !c.text(), Colour: c.colours(), Command: "stillwater " + strings.Join(c.args, " "),
	}
	if f.seed == 0 {
		return o, usageError("--seed 0: give at least 1")
	}
	switch f.size {
	case "full":
		o.Size = paper.Full()
	case "small":
		o.Size = paper.Small()
	default:
		return o, usageError("--size %q: it must be full or small", f.size)
	}
	for _, name := range f.schemes {
		o.Schemes = append(o.Schemes, paper.Scheme(name))
	}
	if file, ok := c.stderr.(*os.File); ok && isTerminal(file) {
		o.Progress = file
	}
	return o, nil
}

func simPaper(c *cli, f *simPaperFlags) error {
	o, err := f.options(c)
	if err != nil {
		return err
	}
	r, err := paper.Run(c.ctx, o)
	switch {
	case errors.Is(err, paper.ErrOptions):
		return usageError("%w", err)
	case err != nil:
		return err
	case r.Passed:
		return nil
	case c.text(): // which ends with the verdict
		return checkError(errors.New("not all of it matches the published figures"))
	}
	return checkError(errors.New(r.Verdict))
}
