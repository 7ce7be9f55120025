package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/faultsim"
	"github.com/stillwater-rpc/stillwater/bench/report"
)

// schemaSimFaults names the objects that sim faults prints: one a seed, or one of all.
const schemaSimFaults = "stillwater.sim_faults.v1"

const simFaultsLong = `Looks for defects of this program by bad luck. From each seed it draws a small world of clients and a server, and what goes wrong in it: packets that are
lost, doubled, late or damaged, every kind of message aimed at, networks cut in one direction or both, hosts that stall, die and come back. It plays that with the
code that serve and call run, on a clock of its own, and watches that no request runs twice, that each call has exactly one outcome and a true one, and that all
books are whole. Then the faults end, and everything must settle: no call and no session may be left waiting, and no credit with nobody.

A violation is a fault of this program. Its seed replays it, and --shrink finds a short plan that still shows it. The exit code is 3 then.`

// failuresKept is how many seeds may fail before the rest are not looked at: one at a time is mended.
const failuresKept = 10

// simFaultsFlags are the flags of sim faults.
type simFaultsFlags struct {
	first, seed     uint64
	seeds, parallel int
	shrink          bool
	tries           int
	plan, write     string
}

func newSimFaults(c *cli) *cobra.Command {
	f := simFaultsFlags{}
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "Play thousands of small worlds with faults of every kind, and find what must not happen",
		Long:  simFaultsLong,
		Example: "  stillwater sim faults --seeds 10000\n" +
			"  stillwater sim faults --seed 4711 --shrink --write plan.json\n" +
			"  stillwater sim faults --plan plan.json -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("seed") {
				f.first, f.seeds = f.seed, 1
			}
			return c.simFaults(f)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.seeds, "seeds", 10_000, "`number` of seeds")
	flags.Uint64Var(&f.first, "first", 1, "the first `seed`; the others follow it")
	flags.Uint64Var(&f.seed, "seed", 0, "play this `seed` alone")
	flags.StringVar(&f.plan, "plan", "", "play the plan in this `file` instead of drawing any")
	flags.IntVar(&f.parallel, "parallel", 0, "`number` of runs at the same time; 0 = one a CPU")
	flags.BoolVar(&f.shrink, "shrink", false, "find a short plan that fails like each that does")
	flags.IntVar(&f.tries, "tries", 5000, "`plans` that --shrink may try for each")
	flags.StringVar(&f.write, "write", "", "write the plan of a single seed to this `file`, shrunk with --shrink")
	return cmd
}

// check says what is wrong with the flags.
func (f *simFaultsFlags) check() error {
	switch {
	case f.seeds < 1 || f.tries < 1 || f.parallel < 0:
		return usageError("--seeds %d, --tries %d, --parallel %d: at least 1, 1 and 0", f.seeds, f.tries, f.parallel)
	case f.write != "" && f.seeds != 1 && f.plan == "":
		return usageError("--write needs --seed: it writes one plan")
	}
	return nil
}

// simFaults plays what the flags say.
func (c *cli) simFaults(f simFaultsFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.parallel == 0 {
		f.parallel = runtime.GOMAXPROCS(0)
	}
	s := &faultSwarm{cli: c, simFaultsFlags: f, begun: time.Now()}
	s.Outcomes, s.Dropped = make(map[string]uint64), make(map[string]uint64)
	if err := s.play(); err != nil {
		return err
	}
	if err := s.print(); err != nil {
		return err
	}
	if len(s.Failures) > 0 {
		return checkError(fmt.Errorf("%d of %d plans were violated", len(s.Failures), s.Seeds))
	}
	return nil
}

// faultSwarm is a swarm with what came of it.
type faultSwarm struct {
	*cli
	simFaultsFlags
	faultsData
	begun time.Time
}

// faultsData is what sim faults prints of all seeds.
type faultsData struct {
	First    uint64            `json:"first_seed"`
	Seeds    int               `json:"seed_count"`
	Faults   int               `json:"fault_count"`
	Calls    uint64            `json:"call_count"`
	Ran      uint64            `json:"ran_count"`
	Killed   uint64            `json:"killed_count"`
	Outcomes map[string]uint64 `json:"outcome_counts"`
	Dropped  map[string]uint64 `json:"dropped_counts"`
	Settled  time.Duration     `json:"settled_ns_max"`
	Awake    time.Duration     `json:"awake_ns_max"`
	Elapsed  time.Duration     `json:"elapsed_ns"`
	SeedsPS  float64           `json:"seeds_per_s"`
	Failures []faultsFailure   `json:"failures"`
}

// faultsFailure is a run that was violated, with its plan if that was shrunk.
type faultsFailure struct {
	*faultsim.Result
	Plan *faultsim.Plan `json:"plan,omitempty"`
}

// play plays the plan of a file, or those of the seeds.
func (s *faultSwarm) play() error {
	if s.simFaultsFlags.plan != "" {
		file, err := os.Open(s.simFaultsFlags.plan)
		if err != nil {
			return fmt.Errorf("reading the plan: %w", err)
		}
		plan, err := faultsim.Read(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return usageError("%s: %w", s.simFaultsFlags.plan, err)
		}
		s.First = plan.Seed
		r, err := faultsim.Play(s.ctx, plan)
		if err != nil {
			return err
		}
		return s.take(r, plan)
	}
	s.First = s.first
	errOut, _ := s.stderr.(*os.File)
	bar := report.NewProgress(errOut, int64(s.seeds), "playing")
	defer bar.Close()
	var failed error
	err := faultsim.Swarm{First: s.first, Count: s.seeds, Parallel: s.parallel, Each: func(r *faultsim.Result) bool {
		failed = s.take(r, faultsim.Draw(r.Seed))
		bar.Set(int64(s.Seeds))
		return failed == nil && len(s.Failures) < failuresKept
	}}.Run(s.ctx)
	return errors.Join(err, failed)
}

// take adds a run to the sums, and shrinks its plan if it failed.
func (s *faultSwarm) take(r *faultsim.Result, plan faultsim.Plan) (err error) {
	s.Seeds++
	s.Faults += r.Faults
	s.Calls, s.Ran, s.Killed = s.Calls+r.Calls, s.Ran+r.Ran, s.Killed+r.Killed
	s.Settled, s.Awake = max(s.Settled, r.Settled), max(s.Awake, r.Awake)
	for name, n := range r.Outcomes {
		s.Outcomes[name] += n
	}
	for name, n := range r.Dropped {
		s.Dropped[name] += n
	}
	failure := faultsFailure{Result: r}
	if r.Failed() {
		if s.shrink {
			if plan, err = faultsim.Shrink(s.ctx, plan, s.tries); err != nil {
				return err
			}
			failure.Plan = &plan
		}
		s.Failures = append(s.Failures, failure)
	}
	if s.write != "" {
		text, err := plan.Text()
		if err == nil {
			err = os.WriteFile(s.write, text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing the plan: %w", err)
		}
	}
	if s.format == formatJSONL {
		return s.printLine(schemaSimFaults, failure)
	}
	return nil
}

// print prints the sums.
func (s *faultSwarm) print() error {
	s.Elapsed = time.Since(s.begun)
	s.SeedsPS = float64(s.Seeds) / s.Elapsed.Seconds()
	switch s.format {
	case formatJSONL:
		return nil
	case formatJSON:
		return s.printObject(schemaSimFaults, s.faultsData)
	}
	var text strings.Builder
	for _, f := range s.Failures {
		f.describe(&text)
	}
	fmt.Fprintf(&text, "%d seeds from %d: %d faults, %d calls, of which %d ran; %d violated\n", s.Seeds, s.First, s.Faults, s.Calls, s.Ran, len(s.Failures))
	fmt.Fprintf(&text, "settled within %v, all sessions awake within %v; %v, %.0f seeds/s\n",
		s.Settled.Round(time.Microsecond), s.Awake.Round(time.Microsecond), s.Elapsed.Round(time.Millisecond), s.SeedsPS)
	fmt.Fprintf(&text, "outcomes: %s\ndropped by aim: %s\n", list(s.Outcomes), list(s.Dropped))
	return s.cli.print(text.String())
}

// describe says what happened, and how to see it again.
func (f *faultsFailure) describe(text *strings.Builder) {
	fmt.Fprintf(text, "seed %d (%s, %d faults, %d calls) is violated:\n", f.Seed, f.Scheme, f.Faults, f.Calls)
	for _, v := range f.Violations {
		fmt.Fprintf(text, "  %s\n", strings.ReplaceAll(v, "\n", "\n  "))
	}
	fmt.Fprintf(text, "replay it: stillwater sim faults --seed %d --shrink --write plan.json\n", f.Seed)
	if f.Plan != nil {
		plan, _ := f.Plan.Text() // it was read or drawn, so it can be written
		fmt.Fprintf(text, "a short plan, for stillwater sim faults --plan FILE:\n%s", plan)
	}
}

// list shows counts by name.
func list(counts map[string]uint64) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
