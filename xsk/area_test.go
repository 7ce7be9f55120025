//go:build linux

package xsk

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// recorder counts the calls that an area makes, and refuses some.
type recorder struct {
	refuse string // "pool": there are no reserved pages; "populate": they cannot be had all the same; "advise": no huge pages at all
	maps   []int  // flags of the calls
	mapped int    // bytes
}

// calls stand in for the kernel's. Of its pool they take ordinary memory, so that no test needs, or uses up, what was reserved for others.
func (r *recorder) calls() *areaCalls {
	return &areaCalls{
		mapMemory: func(size, flags int) ([]byte, error) {
			r.maps = append(r.maps, flags)
			if flags != 0 && r.refuse == "pool" {
				return nil, unix.ENOMEM
			}
			r.mapped += size
			return kernelCalls.mapMemory(size, 0)
		},
		unmap: func(memory []byte) error {
			r.mapped -= len(memory)
			return unix.Munmap(memory)
		},
		advise: func(memory []byte, advice int) error {
			if r.refuse == "advise" || r.refuse == "populate" && len(r.maps) == 1 {
				return unix.EINVAL
			}
			return unix.Madvise(memory, advice)
		},
	}
}

// TestAreaFallsBack: whatever the kernel refuses, there is memory to use, of the length that was asked for, and nothing is left of what was tried.
func TestAreaFallsBack(t *testing.T) {
	const reserve = unix.MAP_HUGETLB | unix.MAP_HUGE_2MB
	for name, c := range map[string]struct {
		refuse   string
		size     int
		maps     []int
		reserved bool
	}{
		"reserved pages":       {"", 3 << 20, []int{reserve}, true},
		"an empty pool":        {"pool", 3 << 20, []int{reserve, 0}, false},
		"a pool out of bounds": {"populate", 3 << 20, []int{reserve, 0}, false},
		"nothing but pages":    {"advise", 3 << 20, []int{reserve, 0}, false},
		"one huge page":        {"", hugePageSize, []int{reserve}, true},
		"less than one":        {"", hugePageSize - 4096, []int{0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{refuse: c.refuse}
			a, memory, err := newArea(r.calls(), c.size, Node{})
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(r.maps) != fmt.Sprint(c.maps) || a.reserved != c.reserved {
				t.Errorf("mapped with flags %#x; reserved: %v", r.maps, a.reserved)
			}
			if len(memory) != c.size || cap(memory) != c.size {
				t.Errorf("%d bytes, want %d", len(memory), c.size)
			}
			if !c.reserved && c.size >= hugePageSize && addressOf(memory)%hugePageSize != 0 {
				t.Errorf("it begins at %#x", addressOf(memory))
			}
			memory[0], memory[c.size-1] = 1, 1
			if text := a.text(memory); c.reserved != (text == "2 MiB pages") || text == "" {
				t.Errorf("it says %q", text)
			}
			if err := a.unmap(); err != nil {
				t.Error(err)
			}
			if r.mapped != 0 {
				t.Errorf("%d bytes are left mapped", r.mapped)
			}
		})
	}
}

// TestNoMemory: what nobody can map is an error.
func TestNoMemory(t *testing.T) {
	for _, size := range []int{4096, hugePageSize} {
		calls := &areaCalls{mapMemory: func(int, int) ([]byte, error) { return nil, unix.ENOMEM }}
		if _, _, err := newArea(calls, size, Node{}); err == nil {
			t.Errorf("%d bytes were mapped", size)
		}
	}
}

// TestTransparentHugePages looks at what the kernel says of a UMEM's pages: it has at least one that is huge, and none where they are forbidden or
// the kernel has none.
func TestTransparentHugePages(t *testing.T) {
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	want := err == nil && !strings.Contains(string(enabled), "[never]")
	r := &recorder{refuse: "pool"} // the pool is another case
	const size = 64 << 20          // of so many, one is to be had even of memory that is in pieces
	a, memory, err := newArea(r.calls(), size, Node{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.unmap()
	huge := hugeBytes(memory)
	if huge > 0 != want || huge > size {
		t.Errorf("%d of %d bytes are in huge pages; enabled: %s", huge, size, enabled)
	}
	if text := a.text(memory); strings.Contains(text, "transparent huge pages") != want {
		t.Errorf("it says %q", text)
	}
	other, second, err := newArea(r.calls(), size, Node{})
	if err != nil {
		t.Fatal(err)
	}
	if both := hugeBytes(second); both > size {
		t.Errorf("the kernel joined two areas: %d bytes", both)
	}
	if err := other.unmap(); err != nil {
		t.Error(err)
	}
}

// TestNodes: a node that is none, or that there is no choice of, changes nothing.
func TestNodes(t *testing.T) {
	allowed, err := allowedNodes()
	if err != nil {
		t.Fatal(err)
	}
	var last int
	for number := range len(allowed) * 64 {
		if allowed.has(number) {
			last = number
		}
	}
	for name, c := range map[string]struct {
		node Node
		kept bool
	}{
		"none":                {Node{}, false},
		"none, by its number": {NodeAt(-1), false},
		"one that is not":     {NodeAt(last + 1), false},
		"beyond all":          {NodeAt(1 << 20), false},
		"one that is":         {NodeAt(last), !allowed.single()},
	} {
		if got := c.node.choice(); got != (Node{}) != c.kept || c.kept && got != c.node {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if NodeAt(-2) != (Node{}) {
		t.Error("a number below 0 names a node")
	}
}

// TestNodeIsPreferred reads back what the kernel was told of the memory, also on a machine that has one node.
func TestNodeIsPreferred(t *testing.T) {
	allowed, err := allowedNodes()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for !allowed.has(number) {
		number++
	}
	a, memory, err := newArea(&kernelCalls, hugePageSize, Node{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.unmap()
	if policy, _, err := policyOf(memory); err != nil || policy != unix.MPOL_DEFAULT {
		t.Errorf("untold: policy %d, %v", policy, err)
	}
	a.node = NodeAt(number)
	a.node.prefer(memory)
	policy, nodes, err := policyOf(memory)
	if err != nil || policy != unix.MPOL_PREFERRED || !nodes.has(number) || !nodes.single() {
		t.Errorf("policy %d, nodes %x, %v", policy, nodes, err)
	}
	memory[0] = 1
	if text := a.text(memory); !strings.HasSuffix(text, fmt.Sprintf("pages, node %d", number)) && !strings.Contains(text, " of ") {
		t.Errorf("it says %q", text)
	}
	NodeAt(1 << 20).prefer(memory) // beyond what a set holds: nothing
}
