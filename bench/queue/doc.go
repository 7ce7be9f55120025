// Command queue is E1 of bench/toolbox, the queue of 60 s, for real over AF_XDP on a veth pair: 1,500 calls a second at a server that can do 1,000, by callers who give up after a second.
// Without control the server is busy all the time and nearly nobody gets an answer that he still waits for; with a bound of the queue, or with credits and deadlines, as many do as it can serve.
//
// It takes three arms a minute each, with Poisson arrivals and exponential service; -full is all three processes, and the bound that is a knife edge.
package main
