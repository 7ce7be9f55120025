//go:build linux

// Command bench has grpc-go overloaded over loopback TCP, bare, with an in-flight cap of 8 in its tap handle, and with package middleware, in one run:
//
//	cd middleware/grpcadmit && go run ./bench
//
// The server is a process of its own on the last CPU, the client one on the first; both have GOMAXPROCS=1. A request costs the server 10 us of CPU beside what grpc-go
// takes. In each round, the capacity is measured anew (closed loop, 64 outstanding, bare), and then each arm, in turn, is offered 1.2 and 2 times as much, as a Poisson
// process that waits for nobody (open loop). Goodput is what was answered within 200 us, 1 ms and 2 ms from the moment that the request arose, as a share of the capacity;
// medians over the rounds, with the smallest and the largest.
//
// The client writes HTTP/2 by itself, with headers that stand in the compression table from the second request on, as grpc-go's own client does. That one takes as much CPU
// for a call as its server, so it could not offer twice the server's capacity from one CPU.
package main
