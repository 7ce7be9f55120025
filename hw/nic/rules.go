//go:build linux

package nic

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	// ErrNoRules means that the driver has no steering rules, or that they are switched off; the error's text says which.
	ErrNoRules = errors.New("no steering rules here")
	// ErrRuleConflict means that another rule has that port.
	ErrRuleConflict = errors.New("another rule has that port")
	// ErrRulesFull means that the NIC has no room for another rule.
	ErrRulesFull = errors.New("the table of rules is full")
)

// ruleCountMax bounds what a driver's answer makes us allocate; tables have up to a few thousand places.
const ruleCountMax = 1 << 16

// Rules lists the steering rules of an interface (ETHTOOL_GRXCLSRLALL, ETHTOOL_GRXCLSRULE). It needs no privilege. A driver without rules is
// [ErrNoRules].
func Rules(name string) ([]Placed, error) {
	t, err := readTable(ethtool, name)
	if err != nil {
		return nil, err
	}
	return t.rules, nil
}

// table is an interface's table of rules, as it was read and as it was changed since.
type table struct {
	call    caller
	name    string
	rules   []Placed
	size    uint32 // places; 0 if the driver does not say: then only it can choose
	chooses bool   // the driver finds a place by itself
}

func readTable(call caller, name string) (*table, error) {
	count := rxnfc{command: unix.ETHTOOL_GRXCLSRLCNT}
	if err := call(name, unsafe.Pointer(&count)); err != nil {
		return nil, rulesError(name, "count the rules", err)
	}
	if count.count > ruleCountMax {
		return nil, fmt.Errorf("nic: the driver says that %s has %d rules; at most %d are read", name, count.count, ruleCountMax)
	}
	request := make([]uint32, rxnfcTableOffset/4+max(count.count, 1)) // the list begins in the padding at the end
	all := (*rxnfc)(unsafe.Pointer(&request[0]))
	all.command, all.count = unix.ETHTOOL_GRXCLSRLALL, count.count
	if err := call(name, unsafe.Pointer(all)); err != nil {
		return nil, rulesError(name, "list the rules", err)
	}
	t := &table{call: call, name: name, size: uint32(max(all.data, count.data&^locationSpecial)), chooses: count.data&locationSpecial != 0}
	for _, location := range request[rxnfcTableOffset/4:][:min(all.count, count.count)] {
		one := rxnfc{command: unix.ETHTOOL_GRXCLSRULE, spec: flowSpec{location: location}}
		if err := call(name, unsafe.Pointer(&one)); err != nil {
			return nil, rulesError(name, fmt.Sprintf("read rule %d", location), err)
		}
		rule, exact := ruleOf(one.spec)
		t.rules = append(t.rules, Placed{Rule: rule, Location: location, Exact: exact})
	}
	return t, nil
}

// place finds a place for one more rule: the driver's choice, or else the last free one, where a rule stands behind those that are there already.
func (t *table) place() (uint32, error) {
	if t.chooses || t.size == 0 {
		return locationAny, nil
	}
	for location := t.size; location > 0; {
		location--
		if !slices.ContainsFunc(t.rules, func(p Placed) bool { return p.Location == location }) {
			return location, nil
		}
	}
	return 0, fmt.Errorf("%w: all %d places are taken", ErrRulesFull, t.size)
}

// find returns the first exact rule that a condition holds for.
func (t *table) find(holds func(Rule) bool) (Placed, bool) {
	i := slices.IndexFunc(t.rules, func(p Placed) bool { return p.Exact && holds(p.Rule) })
	if i < 0 {
		return Placed{}, false
	}
	return t.rules[i], true
}

// findRule returns the rule that is exactly as one of ours.
func (t *table) findRule(r Rule) (Placed, bool) {
	return t.find(func(other Rule) bool { return other == r })
}

// insert makes a rule (ETHTOOL_SRXCLSRLINS). It needs CAP_NET_ADMIN.
func (t *table) insert(r Rule) (Placed, error) {
	location, err := t.place()
	if err != nil {
		return Placed{}, fmt.Errorf("nic: steer port %d of %s to queue %d: %w", r.Port, t.name, r.Queue, err)
	}
	request := rxnfc{command: unix.ETHTOOL_SRXCLSRLINS, spec: r.spec(location)}
	if err := t.call(t.name, unsafe.Pointer(&request)); err != nil {
		return Placed{}, rulesError(t.name, fmt.Sprintf("steer port %d to queue %d", r.Port, r.Queue), err)
	}
	p := Placed{Rule: r, Location: request.spec.location, Exact: true}
	t.rules = append(t.rules, p)
	return p, nil
}

// remove removes a rule (ETHTOOL_SRXCLSRLDEL). It needs CAP_NET_ADMIN.
func (t *table) remove(p Placed) error {
	request := rxnfc{command: unix.ETHTOOL_SRXCLSRLDEL, spec: flowSpec{location: p.Location}}
	if err := t.call(t.name, unsafe.Pointer(&request)); err != nil {
		return rulesError(t.name, fmt.Sprintf("remove the rule of port %d", p.Port), err)
	}
	t.rules = slices.DeleteFunc(t.rules, func(other Placed) bool { return other.Location == p.Location })
	return nil
}

// rulesError adds the cure to what the kernel answered.
func rulesError(name, operation string, err error) error {
	text := fmt.Errorf("nic: %s: %s: %w", name, operation, err)
	switch {
	case unsupported(err):
		return fmt.Errorf("%w: %w%s", ErrNoRules, text, ntupleCure(name))
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w (needs CAP_NET_ADMIN)", text)
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: %w", ErrRulesFull, text)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w (the driver does not take this rule: `ethtool -l %s` shows whether it has the queue, "+
			"and some drivers want the fields of all rules alike: `ethtool -n %s` lists them)", text, name, name)
	}
	return text
}

// ntupleCure says how rules are switched on where the driver has them, and what does without them.
func ntupleCure(name string) string {
	offloads, err := offloadsOf(name)
	if ntuple := offloads[OffloadNtuple]; err == nil && !ntuple.On && ntuple.Changeable {
		return fmt.Sprintf(" (they are switched off: `ethtool -K %s ntuple on`)", name)
	}
	return fmt.Sprintf(" (the driver has none: open a socket on every queue instead, which `stillwater serve --interface %s` does, "+
		"or give the interface one queue: `ethtool -L %s combined 1`)", name, name)
}
