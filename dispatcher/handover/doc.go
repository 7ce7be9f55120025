// Package handover joins the ports of an endpoint's dispatchers. A packet may arrive at any of them, on whichever queue the NIC chose, and is one
// dispatcher's, which its connection id names. [Port] stands between a dispatcher and its own port: it passes on what is for that dispatcher, and hands the
// rest over to the others without a copy where the port can keep what it received for a while: see [Holder].
//
// For each pair of dispatchers there is a ring in each direction. A packet is put there by reference, the other dispatcher handles it within one turn of its
// loop, and then its buffer goes home by the same ring. A ring that is full costs the packet, as a full queue of the NIC does; nobody ever waits.
package handover
