// Command levels is E10 of bench/toolbox, criticality, for real over AF_XDP on a veth pair: a quarter of the calls matters as each of the four levels says, at 1.5 and 3 times what the
// server can do. Without control nobody is answered in time; with control, but without levels, each level loses the same share; with levels those that matter lose nothing.
//
// It takes two and a half minutes; -full has ours also with 4 and with 100 clients.
package main
