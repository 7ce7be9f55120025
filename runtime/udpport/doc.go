// Package udpport is a [dispatcher.Port] over an ordinary UDP socket: what a session falls back to where AF_XDP is
// not to be had, and what AF_XDP is compared with.
//
// The socket is raw: non-blocking recvmmsg(2) and sendmmsg(2), never package net, because Go's netpoller is not
// reached while a spinning loop that yields is runnable. Everything is allocated by [Open]; a packet costs no
// allocation and one copy each way, the kernel's.
//
// A Port has one owner at a time, as dispatcher.Port says. Its address may be a wildcard, but then the kernel chooses
// the source address of what is sent: on a host with several addresses, listen on one of them.
package udpport
