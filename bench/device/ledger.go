//go:build linux

package main

import (
	"fmt"
	"sync/atomic"

	"github.com/stillwater-rpc/stillwater/bench/checker"
)

// ledger keeps what is known of each request in four bytes, so that ten minutes of half load fit: [checker.Log] needs 48, and what reads it more.
type ledger struct {
	marks   atomic.Uint64
	entries []atomic.Uint32 // by mark
	beyond  atomic.Uint64   // marks that there was no room for
}

// The parts of an entry: counts of endings and executions, and the last outcome plus one.
const (
	endingUnit    = 1
	executionUnit = 1 << 8
	outcomeUnit   = 1 << 16
	countMask     = 0xff
)

func newLedger(room int) *ledger { return &ledger{entries: make([]atomic.Uint32, room+1)} }

// Mark gives out the next mark.
func (l *ledger) Mark() uint64 { return l.marks.Add(1) }

// Ended notes an outcome.
func (l *ledger) Ended(e checker.Ending) {
	l.add(e.Mark, endingUnit+uint32(e.Outcome+1)*outcomeUnit)
}

// Executed notes that a handler began.
func (l *ledger) Executed(x checker.Execution) { l.add(x.Mark, executionUnit) }

func (l *ledger) add(mark uint64, what uint32) {
	if mark >= uint64(len(l.entries)) {
		l.beyond.Add(1)
		return
	}
	l.entries[mark].Add(what)
}

// check returns the number of requests, of those that were answered, and of violations with an example.
func (l *ledger) check() (requests, answered, violations uint64, example string) {
	requests = l.marks.Load()
	if n := l.beyond.Load(); n > 0 {
		return requests, 0, n, fmt.Sprintf("%d records found no room: nothing is known of them", n)
	}
	for mark := uint64(1); mark <= requests; mark++ {
		v := l.entries[mark].Load()
		endings, executions := v&countMask, v/executionUnit&countMask
		outcome := checker.Outcome(v/outcomeUnit) - 1
		ran := outcome == checker.OK || outcome == checker.Failed
		kept := outcome == checker.Rejected || outcome == checker.NeverSent
		if outcome == checker.OK {
			answered++
		}
		if endings != 1 || executions > 1 || ran && executions == 0 || kept && executions > 0 {
			violations++
			example = fmt.Sprintf("mark %d: %d outcomes, the last %v, %d executions", mark, endings, outcome, executions)
		}
	}
	return requests, answered, violations, example
}
