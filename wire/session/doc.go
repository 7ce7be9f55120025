// Package session is the reliable-datagram machine: connections, address tokens, at most once at the server, and
// outstanding requests at the client. It knows nothing of credits: limits pass through it as numbers.
//
// Endpoint > connection > session: a [Conn] is a pair of peers and is shared by the sessions between them; a
// session is one virtual client. At the server, [Peers] is the slab of sessions (pointer-free, so that a million
// idle ones are not scanned by the garbage collector) and [Slots] decides at most once for the active ones. At the client, [Outstanding]
// gives out slots and finds the call that an answer belongs to, and [Retransmit] says when to ask again.
//
// Nothing here is safe for concurrent use; the dispatcher owns all of it.
package session
