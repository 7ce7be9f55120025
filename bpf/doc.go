// Package bpf loads the steering program, attaches it to an interface, and says what it did with each packet.
//
// The program (steer.bpf.c) matches protocol, destination address and destination port exactly against the registered
// services, writes the arrival time into the eight bytes before the packet, and redirects it to the AF_XDP socket of
// the receive queue. All else is left to the kernel, and so is ours where no socket is registered; each verdict is
// counted by its [Reason].
//
// # Lifetimes
//
// A [Program] owns the kernel program, its maps, and one bpf_link. The link is not pinned: when the process dies, by whatever
// cause, the kernel detaches the program and the host's traffic goes on. The Program must stay referenced as
// long as it shall stay attached, for an unreferenced link is closed by the garbage collector, which detaches it too.
// A socket that is closed leaves the map of sockets by itself.
//
// # Pins
//
// [Program.Pin] makes all that outlive its process, in a folder of a BPF file system, for servers that share one program on one NIC: each
// adopts it by [Adopt], puts its own sockets and services in, and takes them out again. An adopter needs permission to open the pins and no
// capability. [Pins] is the folder for whoever attaches, detaches and removes; [Clean] finds those that lead nowhere.
// A program of the user's own can stand in for ours, if it keeps to CONTRACT.md: [LoadObject].
//
// # Traps
//
//   - A program that somebody else attached is never replaced: Attach returns a [HeldError] and changes nothing.
//   - A socket registered under a queue that it is not bound to swallows that queue's packets without a trace
//     (net/xdp/xsk.c, xsk_rcv_check); nothing here can notice.
//   - Sockets are by queue, not by service: what comes in on the queue of another server is dropped there. Where several
//     servers share a program, the NIC has to bring each service's packets to its server's queues (n-tuple rules).
//   - Driver metadata may be missing: packets then arrive without a stamp, counted as [ReasonRedirectedUnstamped].
//   - veth needs at least as many receive queues as its peer has transmit queues, else native mode fails with ENOSPC.
//   - This package does not import cilium/ebpf/rlimit, which sets the memory-lock limit to zero for a moment;
//     kernels before 5.11 would need it.
package bpf
