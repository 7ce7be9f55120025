package grpcadmit

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stillwater-rpc/stillwater/credit/admit"
)

// final are the refusals that no other attempt should follow, made once: under overload they are most of what a server says.
var final = func() (errors [admit.ReasonCount]error) {
	for reason := range errors {
		errors[reason] = status.Error(codes.ResourceExhausted, "refused: "+admit.Reason(reason).String())
	}
	return errors
}()

// refusal is the status of a request that did not run.
func refusal(v admit.Verdict) error {
	if v.Advice == admit.AdviceDoNotRetry && v.Reason < admit.ReasonCount {
		return final[v.Reason]
	}
	s := status.New(codes.Unavailable, "refused: "+v.Reason.String())
	if v.RetryAfter > 0 {
		if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(v.RetryAfter)}); err == nil {
			s = with
		}
	}
	return s.Err()
}

// canceled is the status of a request whose client did not wait.
func canceled(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }

var doNotRetry = metadata.Pairs(pushbackKey, "-1")

// pushback is the trailer that says when to try again; nil = it cannot be said.
func pushback(v admit.Verdict) metadata.MD {
	switch {
	case v.OK || v.Reason == admit.ReasonNone:
		return nil
	case v.Advice == admit.AdviceDoNotRetry:
		return doNotRetry
	case v.RetryAfter > 0:
		ms := (v.RetryAfter + time.Millisecond - 1) / time.Millisecond
		return metadata.Pairs(pushbackKey, strconv.FormatInt(int64(ms), 10))
	}
	return nil
}
