// Package faultsim looks for defects by bad luck: many small worlds of package runtime/sim, each drawn from a seed, with faults of every kind on every kind
// of message, and after them fair weather, in which everything must settle.
//
// A [Plan] is one such world as data: hosts, sessions, scheme, every single call, every fault with its time. [Draw] makes one of a seed, [Play] plays it
// and says what must not have happened, [Shrink] makes a failing one as short as it can, and a [Swarm] does all of that for many seeds. The same plan
// always takes the same course, so a failure replays from its seed, and from its file when the drawing has changed since.
//
// What is asserted while it lasts: a request runs at most once; a call has exactly one outcome, in time; whoever is told that his call was answered, or that it did
// not run, is told the truth; every dispatcher's books are whole, and every packet is somewhere. When the faults have ended: all calls end
// soon, each session makes a call that is answered soon, both ends' books of its credits agree, and when all are silent no credit is left with anybody.
package faultsim
