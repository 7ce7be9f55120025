// Package cpu says which CPUs this process may use, and narrows them on request.
//
// On a machine with few CPUs, a polling process does best with a CPU of its own: its poller, its workers and its
// garbage collector then take turns by Go's scheduler alone, and the peer on the other CPU is not disturbed. But where a
// process runs is its owner's decision: no package of this library calls [PinProcess] unless a setting or a flag that its
// user gave says so.
package cpu
