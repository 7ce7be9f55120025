// Command rings compares our AF_XDP rings with those of github.com/asavie/xdp, each used as its own interface wants it and not through the
// other's: 64-byte packets over one veth pair, sent one at a time and in bursts of 32 to a peer that counts and drops them in XDP,
// received from a peer that sends as fast as it can, taken off a full RX ring, and bounced one by one by a peer whose XDP program sends them back.
//
// asavie/xdp stands there twice: as its own examples use it, and tuned so that its search for free frames is short, as only somebody who has
// read its code would. All arms have the same program, the same sizes of rings and the same peer. Each has processes of its own in each
// round, since asavie/xdp cannot have a queue twice in one.
//
// All wait alike for packets, once spinning and once asleep in poll(2) when they find none, and they look at the same times by the clock. On a
// veth pair the kernel receives on the sender's CPU, so that what is received is what that gets done, and who disturbs it less often gets
// more: without a time between two looks that is who takes longer for what it found. What the rings themselves cost is how long it takes
// to take packets that lie on the RX ring already.
package main
