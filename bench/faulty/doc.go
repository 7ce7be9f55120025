// Command faulty runs overload over a bad network: packets are lost, doubled and overtaken with a probability each, on their way in at
// both ends. Every call must have an outcome soon after its deadline, no handler may run twice, and when all is quiet the books must
// balance; and goodput must not fall by much more than what was lost.
//
// With a deadline as short as the SLO nothing is sent twice, so there are loads with longer ones as well: they retransmit.
package main
