// Package xdpport is the port over AF_XDP: one XSK on one NIC queue, the steering program that feeds it, and the kernel's
// route and neighbour tables for where packets go.
//
// A port has one address, or one of each family. The kernel keeps the interface: ARP, neighbour discovery, ping and every other packet that is not for our addresses and port pass on. The UDP port is held by an ordinary
// socket at each address too, so that nobody else can take it. If the process dies, the program detaches with it, since its link is not pinned.
//
// What is sent to a peer whose MAC is not known yet is left to the kernel, by the rules of package neighbour.
//
// Several processes can share one program and one interface: with PinPath the port adopts the program that is pinned there, puts its sockets and
// its service in, and takes them out again. Each has queues of its own.
package xdpport
