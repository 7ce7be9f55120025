// Package admit is what a server does about the load that credits did not keep away: who is let in, who is refused, and what a refusal says.
//
// Each policy is a small value in a file of its own, with its source, and is tested by itself:
//
//	Levels      criticality: a lower level is refused at a lower delay, and none starves
//	Weights     shares of methods: what is beyond a method's share is refused as Sheddable is
//	Bucket      so many units a second, of a method or of a client
//	Age         learnt service times: what cannot be answered in time is refused before it runs
//	CoDel       RFC 8289: refuses what is taken from a standing queue, and lets a burst be
//	Order       first come first served, or newest first while overloaded
//	Storm       sees a retry storm, and turns every refusal's advice to "do not retry"
//	Warmup      admits a growing share of what arrives, until the server is warm
//	Shed        an operator's lever: refuses a share of what arrives, the lowest level first
//	Headroom    an operator's lever: admits no more work than a share of the CPUs can do
//	InService   at most so many requests of a method in their handlers at once
//	Downstream  how large the pool of a server may be whose own calls wait for credits
//
// A [Door] composes them: Decide says yes or no for one arrival. A [Gate] is a door with a queue that is bounded in time and a number of permits
// behind it, for a server that has neither: it says run, wait or refuse, and who is next when one is done.
//
// Delay is always the queueing delay that an arrival meets: how long the oldest has waited, or how long the queued work will take, whichever is
// more. Cost is in units: a request that costs ten uses up what ten cheap ones would. Floors and shares reckon with the work that each method was learnt to be
// where no method says what its requests cost.
//
// Nothing here reads a clock, starts a goroutine, logs, allocates on the way of a request or is safe for concurrent use: `now` is an argument, and each
// value has one owner. Where callers are concurrent, one mutex around a gate is enough: a decision takes less than 100 ns. Clocks may stall, go
// back, or stand idle for hours: each policy says what it makes of that.
package admit
