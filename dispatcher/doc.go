// Package dispatcher is the machine between packets and handlers: it finds sessions, decides at most once, keeps the door,
// queues requests, answers them with credits, and, on the other side, issues calls under a peer's credits.
//
// [Dispatcher] is pure: it reads no clock and starts nothing. The current time comes in with each call, packets come and go through a
// [Port], and [Dispatcher.Deadline] says when to call again. [Loop] is its shell on a real machine; runtime/sim can be another. All of
// it has one owner at a time, the holder of the loop's baton.
//
// A [Call] has one outcome. Where its session has a guard (package credit/client) it may take several attempts, each a request of its own, and two at a time: see
// ARCHITECTURE.md, "Attempts at a call".
package dispatcher
