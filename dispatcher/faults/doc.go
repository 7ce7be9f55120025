// Package faults is a bad network in front of a good port: packets are lost, doubled, overtaken and damaged by a seed, on their way
// in, on their way out, or both.
//
// It is middleware around [dispatcher.Port], so the machine under test is the real one, over AF_XDP, over kernel UDP
// or over a test's virtual network. It reads no clock: a delayed packet leaves when the now of a later Receive
// has reached its time. Without faults there is no middleware: [Wrap] returns the port itself.
package faults
