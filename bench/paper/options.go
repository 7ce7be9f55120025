package paper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// ErrOptions says that Options ask for what cannot be done.
var ErrOptions = errors.New("bad options")

// Options say what to compare, and where to show it. The zero value of each field but Runner and Out is usable.
type Options struct {
	Runner Runner
	// Costs says in words which constants the runner has for the cost of receiving, sending, refusing and granting. They are the same
	// for all points, and are printed with the result.
	Costs string

	Figures  []string // of Figures(); empty = all
	Schemes  []Scheme // empty = all. Rows of others are left out, and so are checks that need them
	Size     Size     // zero = Full()
	Seed     uint64   // 0 = 1
	Parallel int      // runs at once; 0 = GOMAXPROCS

	Out     io.Writer // the tables, or the JSON lines
	JSON    bool      // one object per point instead of tables
	Windows bool      // in tables, each window of F7 instead of its five stages
	Colour  bool      // in tables
	HTML    string    // file of the page; "" = none
	Command string    // what was typed, for the page

	Progress *os.File // of the bar, and in JSON mode of the sentences for people; nil = none
}

func (o Options) withDefaults() Options {
	if o.Size == (Size{}) {
		o.Size = Full()
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Parallel == 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Runner == nil:
		return fmt.Errorf("%w: no Runner, which simulates", ErrOptions)
	case o.Out == nil:
		return fmt.Errorf("%w: no Out to print to", ErrOptions)
	case o.Parallel < 1:
		return fmt.Errorf("%w: %d runs at once: at least 1", ErrOptions, o.Parallel)
	}
	return nil
}
