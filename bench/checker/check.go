//go:build linux

package checker

import (
	"fmt"
	"time"
)

// History is all that is known of a run.
type History struct {
	Marks      uint64 // requests issued, with the marks 1 to Marks
	Endings    []Ending
	Executions []Execution
}

// Report is the verdict.
type Report struct {
	Marks      uint64               // requests issued
	Outcomes   [outcomeCount]uint64 // outcomes told
	Executed   map[uint32]uint64    // by boot
	Latest     time.Duration        // by which an outcome came after its deadline, at most; negative if all came before
	Violations []string             // the first of each kind
	Count      uint64               // violations of all kinds
}

// Of is how many requests ended so.
func (r *Report) Of(o Outcome) uint64 { return r.Outcomes[o] }

// Executions is how many handlers began, over all boots.
func (r *Report) Executions() (n uint64) {
	for _, count := range r.Executed {
		n += count
	}
	return n
}

// Err is nil when nothing is wrong.
func (r *Report) Err() error {
	if r.Count == 0 {
		return nil
	}
	return fmt.Errorf("checker: %d violations, among them: %q", r.Count, r.Violations)
}

// Load reads the history that two logs hold. The run must be over: nobody appends any more.
func Load(client, server *Log) (History, error) {
	endings, torn, err := client.Endings()
	if err != nil {
		return History{}, fmt.Errorf("the client's log: %w", err)
	}
	if torn > 0 {
		return History{}, fmt.Errorf("checker: %d outcomes are half written: the client is still running, or died", torn)
	}
	// A torn execution is a handler that was killed before it did anything, so it counts as not begun.
	executions, _, err := server.Executions()
	if err != nil {
		return History{}, fmt.Errorf("the server's log: %w", err)
	}
	return History{Marks: client.Marks(), Endings: endings, Executions: executions}, nil
}

// identity is what a server calls a request; within a boot nothing else may be called so.
type identity struct {
	boot, session uint32
	number        uint64
}

// fate is what happened to one mark.
type fate struct {
	endings, executions uint32
	outcome             Outcome
}

// judge collects the violations.
type judge struct {
	report Report
	seen   map[string]bool // kinds of which an example was kept
}

func (j *judge) violation(kind, format string, args ...any) {
	j.report.Count++
	if !j.seen[kind] {
		j.seen[kind] = true
		j.report.Violations = append(j.report.Violations, kind+": "+fmt.Sprintf(format, args...))
	}
}

// Check judges a history: each request has exactly one outcome, runs at most once over all boots, ran exactly once if the client
// has its answer, and never if the client was told that it did not.
func Check(h History) Report {
	j := &judge{seen: map[string]bool{}, report: Report{Marks: h.Marks, Executed: map[uint32]uint64{}}}
	fates := make([]fate, h.Marks+1) // mark 0 is nobody's
	j.endings(h.Endings, fates)
	j.executions(h.Executions, fates)
	for mark := uint64(1); mark <= h.Marks; mark++ {
		j.one(mark, fates[mark])
	}
	return j.report
}

func (j *judge) endings(all []Ending, fates []fate) {
	first := true
	for _, e := range all {
		if e.Mark == 0 || e.Mark >= uint64(len(fates)) {
			j.violation("outcome of nothing", "mark %d was never issued, and ended %v", e.Mark, e.Outcome)
			continue
		}
		if e.Outcome >= outcomeCount {
			j.violation("no such outcome", "mark %d ended %v", e.Mark, e.Outcome)
			continue
		}
		j.report.Outcomes[e.Outcome]++
		fates[e.Mark].endings++
		fates[e.Mark].outcome = e.Outcome
		if e.Deadline == 0 {
			continue
		}
		// A request that its generator hands over late cannot have ended before: that is no lateness of the runtime.
		if late := e.Finished.Sub(max(e.Deadline, e.Issued)); first || late > j.report.Latest {
			j.report.Latest, first = late, false
		}
	}
}

func (j *judge) executions(all []Execution, fates []fate) {
	names := make(map[identity]uint64, len(all))
	for _, x := range all {
		j.report.Executed[x.Boot]++
		if x.Mark == 0 || x.Mark >= uint64(len(fates)) {
			j.violation("execution of nothing", "%+v", x)
			continue
		}
		fates[x.Mark].executions++
		name := identity{x.Boot, x.Session, x.Number}
		if other, taken := names[name]; taken && other != x.Mark {
			j.violation("one name for two requests", "%+v, and mark %d", x, other)
		}
		names[name] = x.Mark
	}
}

// one judges one request.
func (j *judge) one(mark uint64, f fate) {
	switch {
	case f.endings == 0:
		j.violation("no outcome", "mark %d", mark)
	case f.endings > 1:
		j.violation("more than one outcome", "mark %d has %d, the last is %v", mark, f.endings, f.outcome)
	}
	if f.executions > 1 {
		j.violation("ran more than once", "mark %d ran %d times and ended %v", mark, f.executions, f.outcome)
	}
	if f.endings == 0 {
		return
	}
	if f.outcome.mustRun() && f.executions == 0 {
		j.violation("answered and never ran", "mark %d ended %v", mark, f.outcome)
	}
	if !f.outcome.mayRun() && f.executions > 0 {
		j.violation("ran against its outcome", "mark %d ended %v", mark, f.outcome)
	}
}
