// Command ports compares what carries the packets: our AF_XDP port, our port over kernel UDP, and a bare echo that spins on UDP
// sockets, by 64-byte echoes in a closed loop over one veth pair.
//
// The bare echo sends one message a packet, so the fair comparison is with ours doing the same; what packing adds is shown
// beside it. All spin, one CPU a side.
package main
