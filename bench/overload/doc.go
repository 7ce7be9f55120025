// Package overload runs experiments of bench/toolbox for real: server and callers are processes of their own in two namespaces, joined by a veth pair, over AF_XDP, with the
// production runtime and what a user of it can configure. It is what the commands bench/queue (E1), bench/storm (E3) and bench/levels (E10) run, and with a lock for the server bench/locks (of E16).
//
// An [arm] is a configuration of both ends, with fresh namespaces and processes. Beside its figures stand those of the same arm in the simulator. What a request takes is the wait of
// [target.Single], not work of a CPU, and nobody polls, so that the CPUs are idle most of the time and the figures are of the policies.
package overload
