package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/simulate"
)

// schemaSim names the objects that sim prints: one a run.
const schemaSim = "stillwater.sim.v1"

// simCommands are what else is done with the simulator. A new one is a line here and a file of its name.
var simCommands = []func(*cli) *cobra.Command{
	newSimExperiments,
	newSimFaults,
	newSimPaper,
	newSimToolbox,
}

const simLong = `Simulates a server of yours, its clients and its network, and says what overload control does for it: how much of its capacity is answered within
the SLO when more is asked than it can serve, how long the slowest answers take, and where the rest ends. The simulator runs the code that
serve and call run, on a clock of its own: nothing is sent, no privilege is needed, and the same seed gives the same figures on every machine.

Loads are multiples of what the server could serve: its workers, divided by the mean service time and the costs of a request's packets. A curve of
the demand over time is played instead if --demand gives one.`

func newSim(c *cli) *cobra.Command {
	f := newSimFlags()
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Simulate a server of yours: what will overload control do for it?",
		Long:  simLong,
		Example: "  stillwater sim --service-time lognormal:80us --workers 16 --clients 500 --slo 2ms\n" +
			"  stillwater sim --load 0.5,1,1.5,2,3 --scheme stillwater,dagor,none --html sim.html\n" +
			"  stillwater sim --demand 0s:400k,200ms:1.2M,400ms:400k --window 10ms --html spike.html\n" +
			"  stillwater sim --service-samples times.txt --write checkout.json\n" +
			"  stillwater sim --scenario checkout.json -o jsonl",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.sim(cmd, f) },
	}
	f.register(cmd.Flags())
	for _, child := range simCommands {
		cmd.AddCommand(child(c))
	}
	return cmd
}

// sim runs what the flags or the scenario's file say.
func (c *cli) sim(cmd *cobra.Command, f *simFlags) error {
	w, err := f.sweep(cmd.Flags())
	if err != nil {
		return err
	}
	if f.write != "" {
		text, err := w.Text()
		if err == nil {
			err = os.WriteFile(f.write, text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing the scenario: %w", err)
		}
	}
	s, err := c.simulate(w)
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := writePage(f.html, s.page("stillwater "+strings.Join(c.args, " "))); err != nil {
			return err
		}
	}
	return s.violations()
}

// simulation is a sweep with its results.
type simulation struct {
	simulate.Sweep
	points []simPoint
}

// simulate plays all runs, and prints each as soon as those before it are there.
func (c *cli) simulate(w simulate.Sweep) (*simulation, error) {
	s := &simulation{Sweep: w}
	scenarios := w.Scenarios()
	errOut, _ := c.stderr.(*os.File)
	bar := report.NewProgress(errOut, int64(len(scenarios)), "simulating")
	defer bar.Close()
	out := bar.Around(c.stdout)
	print := s.text(out, c.colours())
	switch c.format {
	case formatJSONL:
		lines := report.NewJSONLines(out, schemaSim)
		print = func(p simPoint) error { return lines.Write(p) }
	case formatJSON:
		print = func(simPoint) error { return nil }
	}
	err := simulate.RunAll(c.ctx, scenarios, runtime.GOMAXPROCS(0), func(i int, r *simulate.Result) error {
		p := s.point(i, r)
		s.points = append(s.points, p)
		bar.Set(int64(i + 1))
		return print(p)
	})
	if err == nil && c.format == formatJSON {
		err = c.printObject(schemaSim, struct {
			Points []simPoint `json:"points"`
		}{s.points})
	}
	return s, err
}

// violations are what the simulator's own checks found: a fault of this program.
func (s *simulation) violations() error {
	var errs []error
	for _, p := range s.points {
		for _, v := range p.Violations {
			errs = append(errs, fmt.Errorf("%s: %s", p.Scheme, v))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return checkError(errors.Join(errs...))
}

// writePage writes a page into a file.
func writePage(path string, page report.Page) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return errors.Join(page.WriteHTML(file), file.Close())
}
