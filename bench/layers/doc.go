// Command layers is a call graph of three servers: a user calls front, front calls middle, middle calls leaf, each a process in a network namespace of its own,
// over AF_XDP. The leaf is killed for ten seconds, or hangs, or can do nothing, or refuses everything; and each caller makes up to three attempts. It counts the attempts that
// reach for the leaf for each of the user's requests, with the defaults, with a budget in each layer alone, and with nothing that holds them back; and it cancels calls
// and looks whether work stops in all three layers.
//
// A leaf that is dead counts nothing, so attempts are counted where they leave: on the packets of middle's port to the leaf (counter), by the marks that user and middle write
// into each payload. What the kernel in the leaf's namespace counted meanwhile as UDP without a socket says that they got there.
package main
