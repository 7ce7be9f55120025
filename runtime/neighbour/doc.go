// Package neighbour answers where a frame goes: next hop, and the Ethernet and IP addresses for it, of one interface.
//
// AF_XDP has neither routes nor ARP nor neighbour discovery. Both stay the kernel's: a [Table] mirrors its tables by rtnetlink(7), and follows
// them as they change. Nothing is learnt from received frames, so nobody can redirect our answers with one.
// [Table.Lookup] is for the data path. What goes to a neighbour that it doesn't know is left to the kernel by [Table.Send], which resolves it, and sends the
// packet then.
//
// The kernel does not see frames sent by AF_XDP, so to it a neighbour that only AF_XDP uses looks idle: it becomes
// stale, and would stay so while its owner changes. Therefore stale neighbours that Lookup has returned are sent an empty
// datagram, every few seconds, upon which the kernel probes them (RFC 4861, section 7.3, which Linux applies to
// ARP as well).
//
// Both families. Routes are those of the tables local, main and (IPv4 only) default, in this order; [Table.PolicyRuleCount] says
// whether the host has rules beyond these, which are not followed. Routes for certain sources (`from` in IPv6 routes), the
// preference of IPv6 default routers, and what ICMP redirects say are not followed either.
//
// A link-local destination is always on the table's own interface.
package neighbour
