//go:build linux

package checker

import "github.com/stillwater-rpc/stillwater/hw/clock"

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
