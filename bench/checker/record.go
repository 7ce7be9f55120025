//go:build linux

package checker

import (
	"fmt"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Outcome is what a client knows of a request when it ends, in the only terms that say something about its execution.
type Outcome uint32

// The outcomes.
const (
	OK        Outcome = iota // answered by its handler: it ran
	Failed                   // its handler ran, and failed
	Rejected                 // refused by the server: it did not run
	NeverSent                // given up before it was sent: it did not run
	Unknown                  // sent, and no word of it: it ran or not
	outcomeCount
)

var outcomeNames = [outcomeCount]string{"ok", "failed", "rejected", "never sent", "unknown"}

// String names the outcome.
func (o Outcome) String() string {
	if o < outcomeCount {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint32(o))
}

// mustRun and mayRun are what an outcome says about its execution.
func (o Outcome) mustRun() bool { return o == OK || o == Failed }
func (o Outcome) mayRun() bool  { return o.mustRun() || o == Unknown }

// Ending is one outcome that a client was told.
type Ending struct {
	Mark     uint64
	Outcome  Outcome
	Due      clock.Time // when the request arose
	Issued   clock.Time // when the generator handed it over, at or after Due
	Deadline clock.Time // zero = none
	Finished clock.Time // when the outcome was told
}

// Execution is one start of a handler.
type Execution struct {
	Mark    uint64
	Boot    uint32 // of the server
	Session uint32 // as the server names it
	Number  uint64 // in that session
}

// Ended appends an outcome.
func (l *Log) Ended(e Ending) {
	l.append(kindEnding, uint32(e.Outcome), [5]uint64{e.Mark, uint64(e.Due), uint64(e.Issued), uint64(e.Deadline), uint64(e.Finished)})
}

// Executed appends an execution. A handler calls it before it does anything else.
func (l *Log) Executed(e Execution) {
	l.append(kindExecution, e.Boot, [5]uint64{e.Mark, uint64(e.Session), e.Number})
}

// Endings reads all outcomes. An outcome that was begun and not ended is one whose client died.
func (l *Log) Endings() (all []Ending, torn int, err error) {
	torn, err = l.each(kindEnding, func(r *line) {
		v := &r.values
		all = append(all, Ending{
			Mark: v[0], Outcome: Outcome(r.small), Due: clock.Time(v[1]), Issued: clock.Time(v[2]),
			Deadline: clock.Time(v[3]), Finished: clock.Time(v[4]),
		})
	})
	return all, torn, err
}

// Executions reads all executions. One that was begun and not ended is that of a handler that was killed before it did anything.
func (l *Log) Executions() (all []Execution, torn int, err error) {
	torn, err = l.each(kindExecution, func(r *line) {
		all = append(all, Execution{Mark: r.values[0], Boot: r.small, Session: uint32(r.values[1]), Number: r.values[2]})
	})
	return all, torn, err
}
