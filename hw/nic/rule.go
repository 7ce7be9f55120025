//go:build linux

package nic

import (
	"encoding/binary"
	"fmt"
)

// Rule steers UDP over IPv4 with exactly one destination port to a receive queue.
type Rule struct {
	Port  uint16
	Queue uint32
}

// Command is what `ethtool` would be told to make the same rule.
func (r Rule) Command(name string) string {
	return fmt.Sprintf("ethtool -N %s flow-type udp4 dst-port %d action %d", name, r.Port, r.Queue)
}

// CommandDelete is what `ethtool` would be told to remove the rule at a location.
func CommandDelete(name string, location uint32) string {
	return fmt.Sprintf("ethtool -N %s delete %d", name, location)
}

// spec is the rule for the kernel: all of the port is compared, and nothing else.
func (r Rule) spec(location uint32) flowSpec {
	s := flowSpec{flowType: flowUDPv4, action: uint64(r.Queue), location: location}
	binary.BigEndian.PutUint16(s.value.destinationPort[:], r.Port)
	binary.BigEndian.PutUint16(s.mask.destinationPort[:], ^uint16(0))
	return s
}

// ruleOf reads a rule of the kernel's. exact says that it compares nothing but the destination port of UDP over IPv4, and sends what fits to a queue of
// the interface itself: only such a rule is ours to recognise. What is not compared may hold anything.
func ruleOf(s flowSpec) (r Rule, exact bool) {
	r = Rule{Port: binary.BigEndian.Uint16(s.value.destinationPort[:]), Queue: uint32(s.action)}
	want := r.spec(s.location)
	return r, s.flowType == want.flowType && s.mask == want.mask && s.maskExt == want.maskExt && s.action == want.action
}

// Placed is a rule of the interface.
type Placed struct {
	Rule
	Location uint32 // its place in the NIC's table, by which it is removed
	Exact    bool   // as [Rule] says; else it matches something else as well, and Rule is not all of it
}
