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
