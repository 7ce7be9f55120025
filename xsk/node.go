//go:build linux

package xsk

import "golang.org/x/sys/unix"

// Node names a NUMA node; its zero value names none.
type Node struct{ above int } // the next number, so that zero is none

// NodeAt names a node by its number. Below 0, as sysfs has it for a device that is near to no node, it names none.
func NodeAt(number int) Node { return Node{max(number+1, 0)} }

func (n Node) number() (number int, named bool) { return n.above - 1, n.above > 0 }

// nodeSet is a set of nodes, as many as the kernel can have (include/linux/numa.h, NODES_SHIFT up to 10).
type nodeSet [1024 / 64]uint64

func (s *nodeSet) has(number int) bool {
	return number >= 0 && number/64 < len(s) && s[number/64]>>(number%64)&1 != 0
}

// choice is the node, or none where memory has only one place to be in, or may not be there.
func (n Node) choice() Node {
	number, named := n.number()
	if !named {
		return n
	}
	allowed, err := allowedNodes()
	if err != nil || !allowed.has(number) || allowed.single() {
		return Node{}
	}
	return n
}

func (s *nodeSet) single() bool {
	count := 0
	for number := range len(s) * 64 {
		if s.has(number) {
			count++
		}
	}
	return count == 1
}

// prefer has the pages of memory come from the node, as long as it has any; from another one if not. Whatever keeps the kernel from
// it (a filter of system calls, a kernel without NUMA) costs time with each packet, and is no cause to fail.
func (n Node) prefer(memory []byte) {
	if number, named := n.number(); named && number < len(nodeSet{})*64 {
		var set nodeSet
		set[number/64] = 1 << (number % 64)
		_ = setPolicy(memory, unix.MPOL_PREFERRED, &set)
	}
}
