//go:build linux

package prove

import (
	"fmt"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Agree compares the counters of a client, all of whose calls have ended, with what the checker counted in the client's log.
func Agree(s sw.Stats, r checker.Report) error {
	of := func(outcomes ...sw.Outcome) (n uint64) {
		for _, o := range outcomes {
			n += s.Outcomes[o]
		}
		return n
	}
	ended := uint64(0)
	for _, n := range s.Outcomes {
		ended += n
	}
	for _, both := range []struct {
		what             string
		counted, checked uint64
	}{
		{"calls", s.Calls, r.Marks},
		{"calls ended", ended, r.Marks},
		{"answered", of(sw.OutcomeOK), r.Of(checker.OK)},
		{"failed", of(sw.OutcomeHandlerError, sw.OutcomePanic, sw.OutcomeReplyTooLarge), r.Of(checker.Failed)},
		{"rejected", of(sw.OutcomeRejected), r.Of(checker.Rejected)},
		{"never sent", of(sw.OutcomeExpired, sw.OutcomeQueueFull, sw.OutcomeTooLarge, sw.OutcomeThrottled, sw.OutcomeBreakerOpen), r.Of(checker.NeverSent)},
		{"unknown", of(sw.OutcomeDeadline, sw.OutcomePeerLost, sw.OutcomeCancelled, sw.OutcomeClosed), r.Of(checker.Unknown)},
	} {
		if both.counted != both.checked {
			return fmt.Errorf("%s: the client counts %d, its log has %d", both.what, both.counted, both.checked)
		}
	}
	return nil
}

// Logs are the two histories of a run.
type Logs struct {
	Client, Server *checker.Log
}

// NewLogs makes both, with room for so many requests.
func NewLogs(requests int) (*Logs, error) {
	client, err := checker.NewLog(requests)
	if err != nil {
		return nil, err
	}
	// Room for half as many executions again: one that runs twice must be seen, not be lost in a full log.
	server, err := checker.NewLog(requests + requests/2)
	if err != nil {
		_ = client.Close() // the first error says it all
		return nil, err
	}
	return &Logs{client, server}, nil
}

// Close gives both up.
func (l *Logs) Close() error {
	if err := l.Client.Close(); err != nil {
		_ = l.Server.Close() // the first error says it all
		return err
	}
	return l.Server.Close()
}
