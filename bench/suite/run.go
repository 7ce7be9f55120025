package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/simulate"
)

// ErrOptions says that Options ask for what cannot be done.
var ErrOptions = errors.New("bad options")

// Options say what to run and where to show it.
type Options struct {
	IDs      []string // as E12; empty = all
	Size     Size
	Seed     uint64 // of the first run of each line; the next are the next; 0 = 1
	Parallel int    // runs at once; 0 = GOMAXPROCS

	Out      io.Writer
	JSON     bool // one object a line of the tables instead of these
	Colour   bool
	HTML     string   // file of the page; "" = none
	Command  string   // what was typed, for the page
	Progress *os.File // of the bar; nil = none
}

// one is a run of a job with one of its seeds.
type one struct {
	table, row int
	job        *Job
	seed       uint64
}

// Run runs the experiments, and prints each as soon as it and those before it are done.
func (s *Suite) Run(ctx context.Context, o Options) ([]*Table, error) {
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Parallel == 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	tables, runs, err := s.plan(o)
	if err != nil {
		return nil, err
	}
	bar := report.NewProgress(o.Progress, int64(len(runs)), "simulating")
	defer bar.Close()
	out := bar.Around(o.Out)
	var alone sync.RWMutex
	err = simulate.All(ctx, len(runs), o.Parallel, func(ctx context.Context, i int) (Sample, error) {
		run := runs[i]
		if run.job.Alone {
			alone.Lock()
			defer alone.Unlock()
		} else {
			alone.RLock()
			defer alone.RUnlock()
		}
		sample, err := run.job.Play(ctx, run.seed)
		if err != nil && ctx.Err() == nil {
			row := tables[run.table].Rows[run.row]
			err = fmt.Errorf("%s, %s, %s: %w", tables[run.table].ID, row.Point(), row.Arm, err)
		}
		return sample, err
	}, func(i int, sample Sample) error {
		run := runs[i]
		t := tables[run.table]
		row := t.Rows[run.row]
		row.Samples = append(row.Samples, sample)
		bar.Set(int64(i + 1))
		if i+1 < len(runs) && runs[i+1].table == run.table {
			return nil
		}
		bar.Describe("simulating after " + t.ID)
		t.finish()
		return t.print(out, o)
	})
	if err != nil {
		return nil, err
	}
	bar.Close()
	if o.HTML == "" {
		return tables, nil
	}
	file, err := os.Create(o.HTML)
	if err != nil {
		return nil, fmt.Errorf("writing the page: %w", err)
	}
	return tables, errors.Join(s.page(tables, o).WriteHTML(file), file.Close())
}

// plan lays the tables out.
func (s *Suite) plan(o Options) (tables []*Table, runs []one, err error) {
	known := map[string]bool{}
	var names []string
	for _, e := range s.Experiments {
		known[e.ID] = true
		names = append(names, e.ID)
		if len(o.IDs) > 0 && !slices.Contains(o.IDs, e.ID) {
			continue
		}
		t := &Table{Experiment: e, suite: s, Size: o.Size}
		for _, j := range e.Jobs(o.Size) {
			t.Rows = append(t.Rows, &Row{Panel: j.Panel, At: j.At, X: j.X, Arm: j.Arm, Clients: j.Clients})
			seeds := j.Seeds
			if seeds == 0 {
				seeds = o.Size.Seeds
			}
			for seed := range seeds {
				runs = append(runs, one{len(tables), len(t.Rows) - 1, &j, o.Seed + uint64(seed)})
			}
		}
		tables = append(tables, t)
	}
	for _, id := range o.IDs {
		if !known[id] {
			return nil, nil, fmt.Errorf("%w: no experiment %q: take one of %s", ErrOptions, id, strings.Join(names, ", "))
		}
	}
	return tables, runs, nil
}

// finish reads what takes all of a table.
func (t *Table) finish() {
	for _, r := range t.Rows {
		r.Derived = map[string]float64{}
		if t.Derive != nil {
			t.Derive(r)
		}
	}
	t.Checks = t.Judge(t)
}

// Missed counts the checks that are not met.
func Missed(tables []*Table) (n int) {
	for _, t := range tables {
		for _, c := range t.Checks {
			if !c.Met {
				n++
			}
		}
	}
	return n
}
