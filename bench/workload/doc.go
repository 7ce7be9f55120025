// Package workload describes the work that an experiment asks for and the instants at which it is asked.
//
// Everything random comes from a seed. The service time of a request travels in its payload ([EncodeWork],
// [DecodeWork]), so the client draws it once, every arm of an experiment meets the same sequence, and a handler
// needs no random numbers of its own.
//
// Nothing here allocates after construction: a sampler that feeds the garbage collector would show up in the very
// tail that it helps to measure.
package workload
