package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/stillwater-rpc/stillwater/bench/target"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// failure is how a call ended without a reply: a word for programs, and a cure for people.
type failure struct {
	outcome string
	cure    string
	code    int
}

const outcomeOK = "ok"

// failures are the typed errors of a call. Some of them are deadlines as the context knows them, so that one comes last.
var failures = []struct {
	is error
	failure
}{
	{sw.ErrNoCredit, failure{"no_credit", "the server is overloaded or not there, or what is left of --timeout is below 0.4 of its SLO: give it more time with --timeout", exitCheck}},
	{sw.ErrDeadline, failure{"deadline", "is a server there, and is the address its own? Otherwise give it more time with --timeout", exitCheck}},
	{sw.ErrPeerLost, failure{"peer_lost", "the server restarted or went away; the request may have run. Call again if it may run twice", exitCheck}},
	{sw.ErrPanic, failure{"panic", "the handler has a fault: the server's log has the stack", exitCheck}},
	{sw.ErrReplyTooLarge, failure{"reply_too_large", "the handler ran, but its reply does not fit: ask for less", exitCheck}},
	{sw.ErrTooLarge, failure{"too_large", "give a shorter payload: one packet has to hold it", exitUsage}},
	{sw.ErrQueueFull, failure{"queue_full", "fewer calls at a time, or more sessions", exitCheck}},
	{sw.ErrThrottled, failure{"throttled", "the server sheds calls of this rank: call less often, or later", exitCheck}},
	{sw.ErrBreakerOpen, failure{"breaker_open", "too many calls have failed lately: is the server there?", exitCheck}},
	{sw.ErrClosed, failure{"closed", "the client was closed meanwhile", exitInternal}},
	{context.Canceled, failure{"cancelled", "", exitInternal}},
	{context.DeadlineExceeded, failure{"timeout", "the time was over before the call began: give it more with --timeout", exitCheck}},
}

// rejections say what to do about a reason.
var rejections = map[sw.RejectReason]string{
	sw.RejectOverloaded:    "the server has more work than it can do in time: call less often, or later",
	sw.RejectExpired:       "the time left did not cover the service: give more with --timeout",
	sw.RejectUnknownMethod: "the server has no such method: `stillwater serve` has " + target.MethodEcho + ", " + target.MethodSpin + ", " + target.MethodSleep + ", and with --work also " + methodWork,
	sw.RejectDraining:      "the server is going away: call another one, or later",
	sw.RejectCancelled:     "the caller cancelled it",
	sw.RejectNoSlot:        "the session has too many requests under way: fewer at a time",
	sw.RejectTooLarge:      "give a shorter payload",
	sw.RejectRateLimited:   "the client, or the method, has used up the rate that the server gives it: call less often",
}

// explain finds out how a call ended.
func explain(err error) failure {
	if err == nil {
		return failure{outcome: outcomeOK}
	}
	if rejected, ok := errors.AsType[*sw.RejectedError](err); ok {
		return failure{"rejected", rejections[rejected.Reason], exitCheck}
	}
	if errors.Is(err, sw.ErrUnavailable) {
		return failure{"unavailable", "the handler could not get what it needs from elsewhere: its text says more", exitCheck}
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
