// Command allocs counts the heap objects that a call costs, in the server's process and in the client's: a million echoes over AF_XDP,
// 16 outstanding, with a handler that builds a new reply.
//
// The generator's own preparation allocates, once a run. So two runs of different length are compared, and what they differ by
// is divided by the calls they differ by.
package main
