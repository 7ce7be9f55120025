// Package client is the client's half of the credit law: whether a request may be sent, in which order the waiting
// ones go, and when one is no longer worth sending.
//
// In Breakwater (Cho et al., OSDI 2020, sections 3.2 and 4) the queue of an overloaded server stands at its clients. A
// [Gate] holds the credits of one session: an absolute, sequenced limit on the running number of requests. What has no
// credit waits in a [Queue], earliest deadline first, and expires there when the time that remains no longer covers
// the way to the server, the queueing that the server aims at, and the service ([ExpiresAt]): moving a queue does not
// make its time disappear.
//
// Nothing that is lost may stall a client: one that has demand, waits for no answer and holds no credit asks for one
// (a probe), again and again, ever more slowly. Nothing that a client forgets may be spent later: its lease on unused
// credits runs out before the server's does.
//
// A scheme of overload control that needs more of its clients than to wait for credits has a [Policy] there.
//
// What a client does about calls that fail is in the hands of a [Guard], one for each server: a [Throttle] and a [Breaker] before an attempt is made, a [Budget]
// for attempts beyond the first, a [Hedge] that knows when a request is slow. [Attempts] is the state of one call over all of them.
//
// Nothing here reads a clock, starts a goroutine or draws a random number. Nothing is safe for concurrent use; a gate,
// a queue and an estimate have one owner each.
package client
