// Command predict holds the simulator against the machine it runs on. It measures what this machine's server costs a request, runs the
// load curve (E12) and the spike (E6) for real over AF_XDP on a veth pair, and plays the same points in the simulator with those costs. What
// differs by more than 10 % is marked, with what was seen to be otherwise than the simulator has it.
//
// There are two predictions. The first spreads over all requests what was taken of the CPUs while capacity was measured. The second takes it
// away in pieces, as long and as often as the server's was taken: where it alone agrees, that was the reason.
package main
