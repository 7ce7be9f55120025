package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/stillwater-rpc/stillwater/bench/target"
	sw "github.com/stillwater-rpc/stillwater/runtime"
	"github.com/stillwater-rpc/stillwater/wire"
)

// failure is how a call ended without a reply: a word for programs, and a cure for people.
type failure struct {
	outcome string
	cure    string
	code    int
}

const outcomeOK = "ok"

// failures are the typed errors of a call. The order matters only in that nothing here wraps a later one.
var failures = []struct {
	is error
	failure
}{
	{sw.ErrNoCredit, failure{"no_credit", "the server grants no credit, because it is overloaded or not there: wait longer with --timeout, or look at its --stats-interval", exitCheck}},
	{sw.ErrDeadline, failure{"deadline", "is a server there, and is the address its own? Otherwise give it more time with --timeout", exitCheck}},
	{sw.ErrPeerLost, failure{"peer_lost", "the server restarted or went away; the request may have run. Call again if it may run twice", exitCheck}},
	{sw.ErrPanic, failure{"panic", "the handler has a fault: the server's log has the stack", exitCheck}},
	{sw.ErrReplyTooLarge, failure{"reply_too_large", "the handler ran, but its reply does not fit: ask for less", exitCheck}},
	{sw.ErrTooLarge, failure{"too_large", "give a shorter payload: one packet has to hold it", exitUsage}},
	{sw.ErrQueueFull, failure{"queue_full", "fewer calls at a time, or more sessions", exitCheck}},
	{sw.ErrClosed, failure{"closed", "the client was closed meanwhile", exitInternal}},
	{context.Canceled, failure{"cancelled", "", exitInternal}},
}

// rejections say what to do about a reason.
var rejections = map[wire.RejectReason]string{
	wire.RejectOverloaded:    "the server has more work than it can do in time: call less often, or later",
	wire.RejectExpired:       "the time left did not cover the service: give more with --timeout",
	wire.RejectOverLimit:     "the server took the credit back: call again",
	wire.RejectUnknownMethod: "the server has no such method: `stillwater serve` has " + target.MethodEcho + ", " + target.MethodSpin + ", " + target.MethodSleep + ", and with --work also " + methodWork,
	wire.RejectDraining:      "the server is going away: call another one, or later",
	wire.RejectCancelled:     "the caller cancelled it",
	wire.RejectNoSlot:        "the session has too many requests under way: fewer at a time",
	wire.RejectTooLarge:      "give a shorter payload",
}

// explain finds out how a call ended.
func explain(err error) failure {
	if err == nil {
		return failure{outcome: outcomeOK}
	}
	if rejected, ok := errors.AsType[*sw.RejectedError](err); ok {
		return failure{"rejected", rejections[rejected.Reason], exitCheck}
	}
	if _, ok := errors.AsType[*sw.HandlerError](err); ok {
		return failure{"handler_error", "this is the handler's own text: the call itself went well", exitCheck}
	}
	for _, f := range failures {
		if errors.Is(err, f.is) {
			return f.failure
		}
	}
	return failure{"failed", "", exitInternal}
}

// callError is the error of a command that made a call.
func callError(address, method string, err error) error {
	f := explain(err)
	text := fmt.Errorf("calling %s at %s: %w", method, address, err)
	if f.cure != "" {
		text = fmt.Errorf("%w\ncure: %s", text, f.cure)
	}
	return &codeError{f.code, text}
}
