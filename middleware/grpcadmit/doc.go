// Package grpcadmit puts package middleware in front of a gRPC server, on plain TCP:
//
//	control := middleware.New(middleware.Config{SLO: 100 * time.Millisecond})
//	server := grpc.NewServer(grpcadmit.Options(control)...)
//
//	server.Serve(grpcadmit.Listener(control, listener))
//
// Requests are decided about in the tap handle, on the connection's own goroutine, before a goroutine is started for them and before their payload is read. Those that may
// not run yet wait in the interceptor. A server that has a tap handle of its own takes [Interceptors] alone, and refuses there. [Listener] refuses most of what is refused
// before gRPC sees it, which is cheaper by far.
//
// # What a refusal says
//
// Codes say whether to try again: RESOURCE_EXHAUSTED where another attempt would only add to the overload, UNAVAILABLE, which the usual retry policies repeat, where it
// may help, with a google.rpc.RetryInfo that says when. A refusal by the interceptor has the trailer grpc-retry-pushback-ms besides (gRFC A6: below zero = do not
// retry), and so has one by the listener, in place of RetryInfo; grpc-go lets a tap handle set no trailers.
//
// # What a request says
//
// The metadata x-criticality is the level, as in package middleware; grpc-previous-rpc-attempts, which gRPC clients send by themselves, the attempt; the
// deadline is the call's.
//
// # Streams
//
// The start of a stream is a request like any other, and the stream gives its permit back when its handler starts: its messages are paced by flow control, and streams
// that last would have all permits. Where its route has an in-service bound, it keeps the permit for as long as it lasts.
//
// The health service (grpc.health.v1.Health) is exempt: a server that is busy is not dead.
package grpcadmit
