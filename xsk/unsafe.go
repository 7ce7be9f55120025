//go:build linux

package xsk

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// All uses of package unsafe are in this file. Mappings are outside the Go heap and hold no Go pointer.

// mapping is a mapped ring.
type mapping struct {
	start unsafe.Pointer
	size  uintptr
}

// mapRing maps a ring of a socket. MAP_POPULATE takes the page faults now and not with the first packets.
func mapRing(fd int, pageOffset int64, size uintptr) (mapping, error) {
	start, err := unix.MmapPtr(fd, pageOffset, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return mapping{}, err
	}
	return mapping{start, size}, nil
}

func (m *mapping) unmap() error {
	if m.start == nil {
		return nil
	}
	err := unix.MunmapPtr(m.start, m.size)
	*m = mapping{}
	return err
}

// ringSize returns the bytes of a mapped ring of count entries.
func ringSize[T entry](offsets *ringOffsets, count uint32) uintptr {
	var one T
	return uintptr(offsets.Desc) + uintptr(count)*unsafe.Sizeof(one)
}

// ringMemory finds indices and entries in a mapped ring.
func ringMemory[T entry](m mapping, offsets *ringOffsets, count uint32) RingMemory[T] {
	return RingMemory[T]{
		Producer: (*uint32)(unsafe.Add(m.start, offsets.Producer)),
		Consumer: (*uint32)(unsafe.Add(m.start, offsets.Consumer)),
		Flags:    (*uint32)(unsafe.Add(m.start, offsets.Flags)),
		Entries:  unsafe.Slice((*T)(unsafe.Add(m.start, offsets.Desc)), count),
	}
}

// setOption is setsockopt at SOL_XDP with a struct, which package unix does not offer.
func setOption[T any](fd, option int, value *T) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option),
		uintptr(unsafe.Pointer(value)), unsafe.Sizeof(*value), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// getOption is getsockopt at SOL_XDP with a struct. A kernel that knows a shorter struct fills only that much.
func getOption[T any](fd, option int, value *T) error {
	size := uint32(unsafe.Sizeof(*value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option),
		uintptr(unsafe.Pointer(value)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// addressOf returns the address of a mapped UMEM for the kernel.
func addressOf(memory []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
}

// setPolicy is mbind(2).
func setPolicy(memory []byte, policy int, nodes *nodeSet) error {
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(memory))), uintptr(len(memory)),
		uintptr(policy), uintptr(unsafe.Pointer(nodes)), 8*unsafe.Sizeof(*nodes)+1, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// policyOf is get_mempolicy(2) of the memory's first page: its policy, and the nodes that this names.
func policyOf(memory []byte) (policy int, nodes nodeSet, err error) {
	var value int32
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&nodes)), 8*unsafe.Sizeof(nodes),
		uintptr(unsafe.Pointer(unsafe.SliceData(memory))), unix.MPOL_F_ADDR, 0)
	if errno != 0 {
		err = errno
	}
	return int(value), nodes, err
}

// nodeOf is get_mempolicy(2) for the node that the memory's first page is on.
func nodeOf(memory []byte) (int, error) {
	var node int32
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&node)), 0, 0,
		uintptr(unsafe.Pointer(unsafe.SliceData(memory))), unix.MPOL_F_NODE|unix.MPOL_F_ADDR, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(node), nil
}

// allowedNodes is get_mempolicy(2) for the nodes that the thread may have memory of.
func allowedNodes() (nodes nodeSet, err error) {
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, 0, uintptr(unsafe.Pointer(&nodes)), 8*unsafe.Sizeof(nodes),
		0, unix.MPOL_F_MEMS_ALLOWED, 0)
	if errno != 0 {
		err = errno
	}
	return nodes, err
}
