//go:build linux

package prove

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/report"
	hwreport "github.com/stillwater-rpc/stillwater/hw/report"
)

// The exit codes.
const (
	exitFailed = 1 // could not be measured
	exitUsage  = 2
	exitMissed = 3 // measured, and a bound is not met
)

// Command is one experiment.
type Command struct {
	Name   string // of the folder under bench/
	About  string // one sentence
	Rounds int    // default of -rounds
	Flags  func(*flag.FlagSet)
	Run    func(context.Context, *Run) error
}

// Main runs the command, or one of its children, and exits.
func (c Command) Main() {
	Children()
	os.Exit(c.main(os.Args[1:], os.Stdout, os.Stderr))
}

// The hidden arguments that make a process a child.
const (
	argServer = "server"
	argClient = "client"
)

// Children is for the first line of main, and of TestMain: where the arguments ask for a child, it is that child and does not return.
func Children() {
	if len(os.Args) < 2 || os.Args[1] != argServer && os.Args[1] != argClient {
		return
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	cpu := flags.Int("cpu", -1, "run on this CPU alone; negative = anywhere")
	_ = flags.Parse(os.Args[2:]) // ExitOnError
	run := child.Server
	if os.Args[1] == argClient {
		run = child.Client
	}
	if err := run(*cpu); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

func (c Command) main(args []string, out io.Writer, errs *os.File) int {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintf(errs, "%s\nUsage, as root: go run ./bench/%s [flags]\n", c.About, c.Name)
		flags.PrintDefaults()
	}
	r := &Run{Err: errs}
	format := flags.String("o", "table", "`format` of the results: table or jsonl")
	flags.IntVar(&r.Rounds, "rounds", c.Rounds, "repetitions")
	flags.Uint64Var(&r.Seed, "seed", 1, "seed of all that is random")
	if c.Flags != nil {
		c.Flags(flags)
	}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil: // said already
		return exitUsage
	case flags.NArg() > 0 || r.Rounds < 1 || *format != "table" && *format != "jsonl":
		fmt.Fprintf(errs, "%s: takes no arguments, at least 1 round, and -o table or jsonl\n", c.Name)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r.start(c.Name, out, *format == "jsonl")
	defer r.progress.Close()
	if err = r.facts(); err == nil {
		err = c.Run(ctx, r)
	}
	r.progress.Close()
	switch {
	case err != nil:
		fmt.Fprintf(errs, "%s: %v\n", c.Name, err)
		return exitFailed
	case r.verdict():
		return 0
	}
	return exitMissed
}

// Run is an experiment under way.
type Run struct {
	Out    io.Writer // for tables; [Run.Say] and [Run.Emit] use it as well
	Err    *os.File
	Rounds int
	Seed   uint64

	json     *report.JSONLines // nil = a table
	progress *report.Progress
	done     int64
	parts    int64 // of a round; 0 = it is one
	met      []string
	missed   []string
}

func (r *Run) start(name string, out io.Writer, asJSON bool) {
	r.progress = report.NewProgress(r.Err, int64(r.Rounds), "starting")
	r.Out = r.progress.Around(out)
	if asJSON {
		r.json = report.NewJSONLines(r.Out, "stillwater.bench."+name+".v1")
	}
}

// NewRun is a run for a test: nobody reads what it prints.
func NewRun(name string, rounds int) *Run {
	r := &Run{Err: os.Stderr, Rounds: rounds, Seed: 1}
	r.start(name, io.Discard, false)
	return r
}

// JSON says whether results are objects instead of tables.
func (r *Run) JSON() bool { return r.json != nil }

// Say prints a line for people: beside JSON it goes to standard error.
func (r *Run) Say(format string, args ...any) {
	w := r.Out
	if r.json != nil {
		w = r.progress.Around(r.Err)
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// Emit prints an object, where objects are asked for.
func (r *Run) Emit(v any) error {
	if r.json == nil {
		return nil
	}
	return r.json.Write(v)
}

// Row prints one line of the results: the object where objects are asked for, otherwise the cells.
func (r *Run) Row(t *report.Table, object any, cells ...any) error {
	if r.JSON() {
		return r.Emit(object)
	}
	return t.Row(cells...)
}

// Parts says that rounds have so many parts, each of which Advance notes.
func (r *Run) Parts(count int) {
	r.parts = int64(count)
	r.progress.Max(r.parts * int64(r.Rounds))
}

// Doing says what goes on now, where progress is shown.
func (r *Run) Doing(format string, args ...any) { r.progress.Describe(fmt.Sprintf(format, args...)) }

// Advance notes that a round is done, or a part of one.
func (r *Run) Advance() {
	r.done++
	r.progress.Describe(fmt.Sprintf("round %d of %d", min(r.done/max(r.parts, 1)+1, int64(r.Rounds)), r.Rounds))
	r.progress.Set(r.done)
}

// Pair starts a server and a client in a lab of their own.
func (r *Run) Pair(ctx context.Context) (*child.Pair, error) { return r.PairOf(ctx, child.Config{}) }

// PairOf does so with a configuration, in which it says what runs.
func (r *Run) PairOf(ctx context.Context, cfg child.Config) (*child.Pair, error) {
	cfg.Executable = "/proc/self/exe" // by its path, a user with less rights may not find it
	cfg.ServerArgs, cfg.ClientArgs, cfg.Stderr = []string{argServer}, []string{argClient}, r.Err
	return child.Start(ctx, cfg)
}

// WithPair runs f with such a pair and takes the lab down whatever happens.
func (r *Run) WithPair(ctx context.Context, f func(*child.Pair) error) error {
	p, err := r.Pair(ctx)
	if err != nil {
		return fmt.Errorf("starting the lab: %w", err)
	}
	return errors.Join(f(p), p.Close())
}

// Machine is the object that says where figures come from.
type Machine struct {
	Kind string `json:"kind"`
	hwreport.Machine
	Seed   uint64 `json:"seed"`
	Rounds int    `json:"rounds"`
}

func (r *Run) facts() error {
	m := Machine{"machine", hwreport.Facts(), r.Seed, r.Rounds}
	r.Say("Machine: %v; load average %.2f; seed %d; %d rounds.", m.Machine, m.LoadAverage1m, m.Seed, m.Rounds)
	return r.Emit(m)
}

// Missed says which bounds are not met.
func (r *Run) Missed() []string { return r.missed }

// verdict says the last sentence, and reports whether all bounds are met.
func (r *Run) verdict() bool {
	text := "All bounds are met: " + strings.Join(r.met, "; ") + "."
	if len(r.missed) > 0 {
		text = "Not met: " + strings.Join(r.missed, "; ") + "."
		if len(r.met) > 0 {
			text += " Met: " + strings.Join(r.met, "; ") + "."
		}
	}
	r.Say("\n%s", text)
	return len(r.missed) == 0
}
