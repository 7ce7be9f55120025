//go:build linux

package xsk

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// hugePageSize is the size of a huge page on the machines that have NICs to speak of. Elsewhere the kernel has none of that size, and gives small ones.
const hugePageSize = 2 << 20

// area is the memory of a UMEM. The CPU and the NIC look up the address of every packet, and a UMEM of small pages has more of them than their
// tables hold; so it is made of huge pages where they can be had: reserved ones, or else those that the kernel puts together by itself.
type area struct {
	calls    *areaCalls
	whole    []byte // as it was mapped
	reserved bool   // of the kernel's pool of huge pages
	node     Node   // that it was asked to be near to; none where there is no choice
}

// areaCalls are the system calls that may be refused; tests stand in for them.
type areaCalls struct {
	mapMemory func(size, flags int) ([]byte, error)
	unmap     func(memory []byte) error
	advise    func(memory []byte, advice int) error
}

var kernelCalls = areaCalls{
	mapMemory: func(size, flags int) ([]byte, error) {
		return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|flags)
	},
	unmap:  unix.Munmap,
	advise: unix.Madvise,
}

// newArea maps memory and returns the part to use: it begins at a huge page where it is as large as one. Which pages it has is no cause to fail.
func newArea(calls *areaCalls, size int, node Node) (a *area, memory []byte, err error) {
	node = node.choice()
	if size < hugePageSize {
		a = &area{calls: calls, node: node}
		if a.whole, err = calls.mapMemory(size, 0); err != nil {
			return nil, nil, err
		}
		return a, a.use(0, size), nil
	}
	rounded := (size + hugePageSize - 1) &^ (hugePageSize - 1)
	if a = newReserved(calls, rounded, node); a != nil {
		return a, a.whole[:size:size], nil
	}
	// What is left over at the ends also keeps the kernel from joining two areas, so that each is known by its own pages.
	a = &area{calls: calls, node: node}
	if a.whole, err = calls.mapMemory(rounded+hugePageSize, 0); err != nil {
		return nil, nil, err
	}
	start := int(-addressOf(a.whole) & (hugePageSize - 1))
	_ = calls.advise(a.whole[start:start+rounded], unix.MADV_HUGEPAGE) // a kernel without them says EINVAL
	return a, a.use(start, rounded)[:size:size], nil
}

// newReserved takes pages of the kernel's pool, or returns nil where it has too few that are free. That they can be had is only certain once they are
// there: another limit, as of a cgroup, would otherwise end the process at the first touch.
func newReserved(calls *areaCalls, size int, node Node) *area {
	whole, err := calls.mapMemory(size, unix.MAP_HUGETLB|unix.MAP_HUGE_2MB)
	if err != nil {
		return nil
	}
	node.prefer(whole)
	a := &area{calls: calls, whole: whole, reserved: true, node: node}
	if calls.advise(whole, unix.MADV_POPULATE_WRITE) != nil {
		_ = a.unmap() // nothing of ours is mapped wrongly, so this cannot fail
		return nil
	}
	return a
}

// use takes the page faults now and not with the first packets. Where that fails, or the kernel (before 5.14) does not know how, registering
// the memory does it, and reports what is wrong.
func (a *area) use(start, size int) []byte {
	memory := a.whole[start : start+size : start+size]
	a.node.prefer(memory)
	_ = a.calls.advise(memory, unix.MADV_POPULATE_WRITE)
	return memory
}

func (a *area) unmap() error { return a.calls.unmap(a.whole) }

// text says what the memory is made of, by what the kernel says of it.
func (a *area) text(memory []byte) string {
	text := fmt.Sprintf("%d KiB pages", os.Getpagesize()>>10)
	switch huge := hugeBytes(memory); {
	case a.reserved:
		text = "2 MiB pages"
	case huge >= len(memory):
		text = "transparent huge pages"
	case huge > 0:
		text = fmt.Sprintf("transparent huge pages for %d of %d KiB", huge>>10, len(memory)>>10)
	}
	if _, named := a.node.number(); !named {
		return text
	}
	if at, err := nodeOf(memory); err == nil {
		text += fmt.Sprintf(", node %d", at)
	}
	return text
}

// hugeBytes is how much of the mapping that memory is in has transparent huge pages (proc_pid_smaps(5)); 0 where that cannot be read.
func hugeBytes(memory []byte) int {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return 0
	}
	address, inside := addressOf(memory), false
	for line := range strings.Lines(string(smaps)) {
		var first, last uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &first, &last); n == 2 {
			inside = first <= address && address < last
			continue
		}
		var kibibytes int
		if n, _ := fmt.Sscanf(line, "AnonHugePages: %d kB", &kibibytes); n == 1 && inside {
			return kibibytes << 10
		}
	}
	return 0
}
