// Package simulate runs experiments in package runtime/sim: a [Scenario] says what stands where and who asks for what, [Run] plays it, and a
// [Result] is what came of it.
//
// A scenario is a file that can be kept: JSON with the words of the command line, and the same file gives the same result to the byte. What it does not
// say is the set-up of the Breakwater paper: a server with ten CPUs, 1,000 open-loop clients on ten hosts, a round trip of 10 us, an SLO of ten times
// mean service plus round trip.
package simulate
