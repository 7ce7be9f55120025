//go:build linux

package xsk

import "golang.org/x/sys/unix"

// The kernel's ABI, from include/uapi/linux/if_xdp.h where nothing else is said. What golang.org/x/sys/unix has is
// used from there under its own name.

const (
	// packetHeadroom is XDP_PACKET_HEADROOM of include/uapi/linux/bpf.h: what the kernel keeps free before a packet.
	packetHeadroom = unix.XDP_PACKET_HEADROOM
	// stampSize is the metadata that our XDP program puts right before a packet.
	stampSize = 8

	// chunkSizeMin and chunkSizeMax are the chunk sizes that the kernel takes in aligned mode: XDP_UMEM_MIN_CHUNK_SIZE and
	// the page size (net/xdp/xdp_umem.c, xdp_umem_reg).
	chunkSizeMin = 2048
	chunkSizeMax = 4096
	// ringSizeMax is what the kernel takes at most for a ring that fits its order of pages (net/xdp/xsk_queue.c).
	ringSizeMax = 65536
)

// ringOffsets is struct xdp_ring_offset: where producer, consumer, entries and flags are in a mapped ring.
type ringOffsets = unix.XDPRingOffset

// mmapOffsets is struct xdp_mmap_offsets, the answer to getsockopt XDP_MMAP_OFFSETS.
type mmapOffsets = unix.XDPMmapOffsets

// umemRegistration is struct xdp_umem_reg, the argument of setsockopt XDP_UMEM_REG.
type umemRegistration = unix.XDPUmemReg

// kernelStatistics is struct xdp_statistics, the answer to getsockopt XDP_STATISTICS.
type kernelStatistics = unix.XDPStatistics
