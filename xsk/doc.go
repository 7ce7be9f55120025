// Package xsk drives one AF_XDP socket: four rings shared with the kernel and the frames that travel on them.
//
// # The four rings
//
// A UMEM is memory registered with the kernel and cut into frames. Four rings pass frames between us and the kernel;
// each has one producer and one consumer, whose indices run freely and are masked to the ring's size:
//
//	fill        we produce     empty frames for reception (addresses)
//	RX          kernel         received packets (descriptors: address, length)
//	TX          we produce     packets to send (descriptors)
//	completion  kernel         frames that have been sent and are ours again (addresses)
//
// A frame goes pool, fill, kernel, RX, us, pool; or pool, us, TX, kernel, completion, pool. The producer writes entries and
// then publishes its index with one store; the consumer loads that index once, reads the entries, and
// publishes how far it came. Both sides keep private copies of both indices, so that a batch costs one load
// and one store. The fill ring is topped up when a sixteenth of it is missing; if it runs dry, packets are lost
// without the sender knowing. If the completion ring is full, nothing is sent. Neither happens here as long as the
// owner calls [Queue.Receive] and [Queue.Kick].
//
// # Lifetimes
//
// A [Queue] owns socket, rings, UMEM and pool. It has one user at a time, without a lock. Bytes that Queue.Bytes and
// Queue.Lend return are the UMEM itself: valid until the frame is released, dropped or submitted, and never
// after [Queue.Close], which unmaps them. Sockets belong to the network namespace of the thread that calls [Open].
//
// # Traps
//
//   - A queue stays busy for up to 50 ms after its last owner is gone, and as long as any ring is mapped: Open retries, and
//     Close unmaps before it closes.
//   - In copy mode one sendto carries at most 32 packets (net/xdp/xsk.c, TX_BATCH_SIZE), then says EAGAIN.
//   - EBUSY from sendto means that a packet was completed but dropped; it is counted as a loss, not sent again.
//   - A received packet starts at frame + 256 + headroom + metadata: mask an address to find its frame.
//   - Descriptors that the kernel finds invalid vanish without an error, so they are refused beforehand.
package xsk
