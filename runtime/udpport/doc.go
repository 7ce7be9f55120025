// Package udpport is a [dispatcher.Port] over an ordinary UDP socket: what a session falls back to where AF_XDP is
// not to be had, and what AF_XDP is compared with.
//
// The socket is raw: non-blocking recvmmsg(2) and sendmmsg(2), never package net, because Go's netpoller is not
// reached while a spinning loop that yields is runnable. Everything is allocated by [Open]; a packet costs no
// allocation and one copy each way, the kernel's. Other systems than Linux have neither call: there each packet costs a recvmsg or
// sendmsg, and some garbage.
//
// A Port has one owner at a time, as dispatcher.Port says. Its address may be a wildcard: then it answers from the address that a peer
// has sent to last, as long as it remembers that (see home.go); to others the kernel chooses the source.
package udpport
