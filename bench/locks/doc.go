// Command locks is the lock of E16 (bench/experiments) for real over AF_XDP on a veth pair, with times that a host's timers can keep: one call in ten holds it for 2 ms, which the server
// does not know, and 1.4 times as many calls come as it can serve, by callers who give up after 30 ms.
//
// With fixed workers whoever needs the lock is late. By itself the server finds how many may wait for it. With a gate in front of the lock (middleware.Control.Enter) the other nine in ten do
// not wait for those that need it.
package main
