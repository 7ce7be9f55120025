// Package rawudp is a baseline: the least that two programs can do over UDP sockets. An echo server and a closed-loop
// client spin on recvmmsg(2) and sendmmsg(2), without sessions, credits, retransmission or packing.
//
// It shares nothing with runtime/udpport, so that a cost added there shows against it. What AF_XDP gains over the
// sockets is measured against this one, since most of its gain over package net is only that it does not sleep.
package rawudp
