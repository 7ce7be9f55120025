// Command kill kills a server under load, the hard way, and starts it again in the same place: what else uses the interface goes on, no
// XDP program stays behind, the same client sessions are served again within a second, and every request of both lives has exactly
// one outcome.
//
// That last is decided by package checker from what the issuer and the handlers wrote into shared memory, which outlives SIGKILL;
// the runtime's own counters are compared with it, not believed.
package main
