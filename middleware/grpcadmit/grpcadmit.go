package grpcadmit

import (
	"context"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/middleware"
)

const (
	criticalityKey = "x-criticality"
	attemptsKey    = "grpc-previous-rpc-attempts"
	pushbackKey    = "grpc-retry-pushback-ms"
	healthPrefix   = "/grpc.health.v1.Health/"
)

// Workers is how many goroutines Options keeps for handlers. A goroutine of its own for each request grows its stack anew each time, a tenth of what a small call
// costs; where requests in flight are bounded, a few can be kept. More requests than that are served all the same.
const Workers = 64

// Options are the tap handle, the interceptors and the workers. The interceptors chain with others, and should come first; a server has one tap handle only.
func Options(c *middleware.Control) []grpc.ServerOption {
	return append(Interceptors(c), grpc.InTapHandle(Tap(c)), grpc.NumStreamWorkers(Workers))
}

// Interceptors are the options without the tap handle: they decide about what it has not decided about.
func Interceptors(c *middleware.Control) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(Unary(c)), grpc.ChainStreamInterceptor(Stream(c))}
}

type passKey struct{}

// held is a pass on its way from the tap handle to the interceptor.
type held struct {
	context.Context
	pass *middleware.Pass
	// stop ends the watch for streams that end on that way: clients that go away, payloads that cannot be read, unknown methods.
	stop func() bool
}

func (h *held) Value(key any) any {
	if key == (passKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// Tap is the tap handle alone. It needs the interceptors as well.
func Tap(c *middleware.Control) tap.ServerInHandle {
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		pass, v := decide(ctx, c, info)
		if !v.OK {
			return nil, refusal(v)
		}
		if pass == nil {
			return ctx, nil
		}
		h := &held{Context: ctx, pass: pass}
		h.stop = context.AfterFunc(ctx, pass.Leave)
		return h, nil
	}
}

// decide takes the decision that was made in front of gRPC, or makes it, and has the front learn what it was about.
func decide(ctx context.Context, c *middleware.Control, info *tap.Info) (*middleware.Pass, admit.Verdict) {
	conn := connOf(ctx)
	if conn == nil {
		return c.Arrive(arrival(ctx, c, info.FullMethodName, info.Header))
	}
	p := conn.front.next()
	if p.decided {
		return p.pass, admit.Verdict{OK: true}
	}
	a := arrival(ctx, c, info.FullMethodName, info.Header)
	conn.front.learn(p.block, a)
	a.Arrived = conn.to // a lower bound of its age
	return c.Arrive(a)
}

func arrival(ctx context.Context, c *middleware.Control, method string, md metadata.MD) middleware.Arrival {
	a := middleware.Arrival{Lane: c.Lane(method)}
	if a.Lane == nil && strings.HasPrefix(method, healthPrefix) {
		a.Lane = middleware.Exempt
	}
	if values := md[criticalityKey]; len(values) > 0 {
		a.Level = middleware.ParseLevel(values[0])
	}
	if values := md[attemptsKey]; len(values) > 0 {
		if n, err := strconv.ParseUint(values[0], 10, 8); err == nil {
			a.Attempt = uint8(n)
		}
	}
	a.Deadline, _ = ctx.Deadline()
	return a
}

// enter has a request wait until it may run. The error is a status, or nil.
func enter(ctx context.Context, c *middleware.Control, method string) (pass *middleware.Pass, v admit.Verdict, err error) {
	h, _ := ctx.Value(passKey{}).(*held)
	if h == nil {
		md, _ := metadata.FromIncomingContext(ctx)
		if pass, v = c.Arrive(arrival(ctx, c, method, md)); !v.OK {
			return nil, v, refusal(v)
		}
	} else if pass = h.pass; !h.stop() {
		return nil, v, canceled(ctx)
	}
	v, err = pass.Wait(ctx)
	switch {
	case err != nil:
		return nil, v, canceled(ctx)
	case !v.OK:
		return nil, v, refusal(v)
	}
	return pass, v, nil
}

// Unary is the interceptor of unary calls.
func Unary(c *middleware.Control) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		pass, v, err := enter(ctx, c, info.FullMethod)
		if err != nil {
			if p := pushback(v); p != nil {
				grpc.SetTrailer(ctx, p)
			}
			return nil, err
		}
		returned := false
		defer func() { pass.Done(returned && ctx.Err() == nil) }()
		reply, err := handler(ctx, request)
		returned = true
		return reply, err
	}
}

// Stream is the interceptor of streams.
func Stream(c *middleware.Control) grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		pass, v, err := enter(stream.Context(), c, info.FullMethod)
		if err != nil {
			if p := pushback(v); p != nil {
				stream.SetTrailer(p)
			}
			return err
		}
		if lane := c.Lane(info.FullMethod); lane == nil || !lane.Apart() {
			pass.Done(false)
			return handler(service, stream)
		}
		defer pass.Done(false)
		return handler(service, stream)
	}
}
