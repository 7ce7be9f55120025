// Package sim is the other shell around the cores: it runs the production wire, session, credit and dispatcher code on a virtual clock, so that
// a whole cluster under overload is one function call, takes no longer than its requests cost, and comes out the same from the same seed.
//
// A [World] is an event loop. In it stand hosts, each with one dispatcher: a [Machine] is a host with CPUs, which serves; any other is a client, whose
// CPU costs nothing. The network between them takes time and, if told to, loses, doubles, delays, reorders and damages packets. A [Source] makes
// calls, a handler that calls further machines waits as a [Handling], and [Checks], which know nothing of the cores' own books, watch that each call has exactly one outcome and no request runs twice.
//
// What is simulated is time and the network. What is not: the cost of a cache miss, of a scheduler, of a kick; they are in [Costs], one set of constants for
// every scheme. A machine may also have user-level threads and be interrupted, as the one of Breakwater's paper: see [MachineConfig]. A world has one owner and starts no goroutine, so many of them may run side by side.
package sim
