package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Config says how to run the experiment. The zero value of each field is the published setting.
type Config struct {
	// Executable runs the children: with ServerArgs and ClientArgs it must call child.Server and child.Client.
	Executable             string
	ServerArgs, ClientArgs []string

	Out     io.Writer // the table, or the JSON lines
	Err     *os.File  // progress, notes, and what the children say
	JSON    bool      // one object per step instead of the table
	HTML    string    // file of the report; "" = none
	Command string    // what was typed, for the report

	Sessions int                  // virtual clients; 0 = 1000
	Service  workload.ServiceTime // 0 = constant 10 us
	Loads    []float64            // times capacity; nil = 0.2 to 2 in ten steps
	Window   time.Duration        // measured part of each step; 0 = 1 s
	Steps    int                  // repetitions of the step from 2x to 0.5x; 0 = 5
	Seed     uint64               // 0 = 1
	Loopback bool                 // kernel UDP in this namespace instead of the lab
	Why      string               // why Loopback, in words for the user
	IPv6     bool                 // instead of IPv4
	Mode     sw.Mode              // of both ends in the lab; unless it is 0, there is no Loopback instead
}

// ErrPlan says that a Config asks for what cannot be done.
var ErrPlan = errors.New("bad plan")

// validate refuses what would only fail later, in a child.
func (c *Config) validate() error {
	switch {
	case c.Sessions < 1 || c.Sessions > sessionsMax:
		return fmt.Errorf("%w: %d sessions: must be 1 to %d", ErrPlan, c.Sessions, sessionsMax)
	case c.Window < windowMin:
		return fmt.Errorf("%w: a window of %v: must be at least %v", ErrPlan, c.Window, windowMin)
	case c.Loopback && c.Mode != sw.ModeAuto:
		return fmt.Errorf("%w: mode %v on loopback, where there is nothing but kernel UDP", ErrPlan, c.Mode)
	case c.Steps < 0:
		return fmt.Errorf("%w: %d steps down: must not be negative", ErrPlan, c.Steps)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Sessions == 0 {
		c.Sessions = 1000
	}
	if c.Service.Mean == 0 {
		c.Service = workload.ServiceTime{Shape: workload.Constant, Mean: 10 * time.Microsecond}
	}
	if c.Loads == nil {
		c.Loads = []float64{0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0}
	}
	if c.Window == 0 {
		c.Window = time.Second
	}
	if c.Steps == 0 {
		c.Steps = 5
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	return c
}

func (c *Config) ipVersion() int {
	if c.IPv6 {
		return 6
	}
	return 4
}

// atMost shortens a part of the run that is usually so long, for who wants a quick look: nothing needs to be longer than the window of a step.
func (c *Config) atMost(usual time.Duration) time.Duration { return min(usual, c.Window) }

// The parts of a run. Each was made as short as its figure stays stable.
const (
	unloadedWindow = 300 * time.Millisecond
	capacityWindow = 500 * time.Millisecond
	capacityWarmup = 300 * time.Millisecond
	// capacityOutstanding keeps the server always busy: four answers share a kick, four wait and four are under way. More would
	// only wait longer, and be asked for again.
	capacityOutstanding = 12
	capacityRounds      = 3 // of which the median counts
	recalibrateWindow   = 100 * time.Millisecond
	highestRounds       = 3 // of the highest load, which the last sentence is about; the median counts
	stepWarmup          = 300 * time.Millisecond
	calmTime            = 100 * time.Millisecond // at 0.5x, before the overload
	overloadTime        = 300 * time.Millisecond // at 2x, before the load falls
	recoveryTime        = 300 * time.Millisecond // at 0.5x
	overloadAt          = 2.0
	recoveredAt         = 0.5
	recoveryGrace       = 20 * time.Millisecond // from the fall of the load until every bucket must be good
	recoveredShare      = 0.95
	bucketWidth         = 10 * time.Millisecond
	sloFloor            = 200 * time.Microsecond
	sloFactor           = 10 // times mean service plus unloaded round trip: the paper's rule
	outstandingMax      = 1 << 19
	sessionsMax         = 100_000 // more would spend the demo on registering them
	windowMin           = 50 * time.Millisecond
	drainLimit          = 10 * time.Second
)

// What the experiment is expected to show; see the README.
const (
	capacityMin    = 0.85 // of one request per service time: what is left is packets and credits
	goodputMin     = 0.88 // of capacity, with credits at 2x
	rejectedMax    = 0.04 // of the offered, with credits at 2x
	controlGoodMax = 0.10 // of capacity, without control at 2x
)
