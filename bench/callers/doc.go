// Package callers makes the calls of experiments that last for seconds: callers who come at the instants of an arrival process, give up, try again by a loop of their own or
// have the runtime do so, and say how much their calls matter.
//
// It sleeps until something is due, so a load of a few thousand calls a second leaves its CPU to others. Package load, which spins, is for loads where microseconds count.
package callers
