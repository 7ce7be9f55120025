//go:build linux

package doctor

import (
	"fmt"
	"math"
	"strings"
)

const fileHugePages = "sys/kernel/mm/transparent_hugepage/enabled"

// memoryLock looks whether a UMEM can be registered: the kernel counts it against the limit of the user, unless CAP_IPC_LOCK is held
// (net/xdp/xdp_umem.c, xdp_umem_account_pages).
func memoryLock(e *examination) []Item {
	queues := 1
	if e.NIC != nil {
		queues = max(1, min(e.NIC.QueueCount, e.Needs.QueuesMax))
	}
	one, all := e.Needs.MemoryBytes(1), e.Needs.MemoryBytes(queues)
	s := subject{
		"memory.memlock", fmt.Sprintf("at least %d bytes, for %d queues, or CAP_IPC_LOCK", all, queues), "the memory of packets cannot be registered",
		"ulimit -l unlimited # as root; or LimitMEMLOCK=infinity in the unit; or docker run --ulimit memlock=-1",
	}
	if held, known := e.capability(capIPCLock); known && held && e.initialUserNamespace() {
		return s.ok("CAP_IPC_LOCK")
	}
	switch limit, ok := e.limit("Max locked memory"); {
	case !ok:
		return s.missing(fileLimits)
	case limit == math.MaxInt64:
		return s.ok("unlimited")
	case limit < one:
		return s.fail("%d bytes", limit)
	case limit < all:
		return s.warn("%d bytes, enough for one queue", limit)
	default:
		return s.ok("%d bytes", limit)
	}
}

// memoryHugePages looks whether the kernel makes large pages of the UMEM, which asks for them.
func memoryHugePages(e *examination) []Item {
	s := subject{
		"memory.huge_pages", "transparent huge pages: madvise or always", "in small pages, a UMEM of several MiB does not fit the CPU's table of pages",
		"echo madvise > /" + fileHugePages,
	}
	text, ok := e.read(fileHugePages)
	_, rest, bracket := strings.Cut(text, "[")
	mode, _, closed := strings.Cut(rest, "]")
	switch {
	case !ok || !bracket || !closed:
		return s.missing(fileHugePages)
	case e.Trial.Memory != "":
		if !strings.Contains(e.Trial.Memory, "KiB pages") {
			return s.ok("a UMEM got %s (transparent huge pages: %s)", e.Trial.Memory, mode)
		}
		return s.warn("a UMEM got %s (transparent huge pages: %s)", e.Trial.Memory, mode)
	case mode != "madvise" && mode != "always":
		return s.warn("transparent huge pages: %s", mode)
	}
	return s.ok("transparent huge pages: %s", mode)
}
