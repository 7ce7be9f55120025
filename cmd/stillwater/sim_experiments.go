package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/experiments"
	"github.com/stillwater-rpc/stillwater/bench/suite"
)

const experimentsLong = `Runs the experiments that show overload control works, in the simulator: each prints a table with all schemes that matter side by side on the same arrivals, a
control arm that must collapse, and its acceptance as checks, each ok or MISSED with the figure.

Without an ID it runs all of them. The small size takes about a minute; the full size, which is what claims are made of, up to half an hour on two CPUs.`

// suiteFlags are the flags of a command that runs a suite of experiments.
type suiteFlags struct {
	size, html string
	seed       uint64
	check      bool
}

func newSimExperiments(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiments [ID...]",
		Short: "Run the experiments that show overload control works",
		Long:  experimentsLong,
		Example: "  stillwater sim experiments E12 E6\n" +
			"  stillwater sim experiments --size full --html experiments.html\n" +
			"  stillwater sim experiments E17 -o jsonl",
	}
	f := &suiteFlags{}
	f.register(cmd, "how much to run: `size` is small (one seed, few points) or full (ten seeds, all points)")
	cmd.RunE = func(_ *cobra.Command, ids []string) error {
		return c.suite(ids, f, experiments.Small(), experiments.Full(), experiments.Run)
	}
	return cmd
}

func (f *suiteFlags) register(cmd *cobra.Command, size string) {
	flags := cmd.Flags()
	flags.StringVar(&f.size, "size", "small", size)
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the first run of each line; the next ones are the next")
	flags.StringVar(&f.html, "html", "", "write the report with the curves to this `file`")
	flags.BoolVar(&f.check, "check", false, "exit with 3 unless all checks are met")
}

// suite runs the experiments of a suite.
func (c *cli) suite(ids []string, f *suiteFlags, small, full suite.Size, run func(context.Context, suite.Options) ([]*suite.Table, error)) error {
	size := small
	switch f.size {
	case "small":
	case "full":
		size = full
	default:
		return usageError("--size %s: it must be small or full", f.size)
	}
	if f.seed == 0 { // the package's word for its default
		return usageError("--seed 0: at least 1")
	}
	errOut, _ := c.stderr.(*os.File)
	tables, err := run(c.ctx, suite.Options{
		IDs: ids, Size: size, Seed: f.seed, Out: c.stdout, JSON: !c.text(), Colour: c.colours(), HTML: f.html,
		Command: "stillwater " + strings.Join(c.args, " "), Progress: errOut,
	})
	switch missed := suite.Missed(tables); {
	case errors.Is(err, suite.ErrOptions):
		return usageError("%w", err)
	case err != nil:
		return err
	case f.check && missed > 0:
		return checkError(fmt.Errorf("%d checks are missed", missed))
	}
	return nil
}
