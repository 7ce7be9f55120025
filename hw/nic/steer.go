//go:build linux

package nic

import (
	"errors"
	"fmt"
)

// Change is what becomes of one rule.
type Change string

// The changes.
const (
	ChangeSet     Change = "set"     // it was not there
	ChangeKept    Change = "kept"    // it was there already
	ChangeRemoved Change = "removed" // it was there
	ChangeAbsent  Change = "absent"  // there was none to remove
)

// Step is one line of a plan, before or after it was carried out.
type Step struct {
	Rule
	Change   Change
	Location uint32 // of the rule; unknown, and 0, for one that is yet to be set
	Command  string // of ethtool, which does the same; empty where nothing is to be done
}

// PlanSteer says what it takes for every rule to be there, and changes nothing. A port that an exact rule sends elsewhere is [ErrRuleConflict], and a
// queue that the interface does not have is [ErrNoQueue]. A driver without rules is [ErrNoRules]: the plan is returned all the same, with all to be set.
func PlanSteer(name string, rules []Rule) ([]Step, error) {
	if err := checkQueues(ethtool, name, rules); err != nil {
		return nil, err
	}
	t, err := readTable(ethtool, name)
	if errors.Is(err, ErrNoRules) {
		steps, _ := (&table{name: name}).planSet(rules) // an empty table has no conflict
		return steps, err
	}
	if err != nil {
		return nil, err
	}
	return t.planSet(rules)
}

// Steer makes the rules that are not there yet, as PlanSteer says. When one fails, those that it made before are removed again. It needs CAP_NET_ADMIN.
func Steer(name string, rules []Rule) ([]Step, error) { return steer(ethtool, name, rules) }

func steer(call caller, name string, rules []Rule) ([]Step, error) {
	if err := checkQueues(call, name, rules); err != nil {
		return nil, err
	}
	t, err := readTable(call, name)
	if err != nil {
		return nil, err
	}
	steps, err := t.planSet(rules)
	if err != nil {
		return nil, err
	}
	var made []Placed
	for i := range steps {
		if steps[i].Change != ChangeSet {
			continue
		}
		p, err := t.insert(steps[i].Rule)
		if err != nil {
			for _, p := range made {
				err = errors.Join(err, t.remove(p))
			}
			return nil, err
		}
		made = append(made, p)
		steps[i].Location = p.Location
	}
	return steps, nil
}

// PlanUnsteer says which of the rules are there to be removed, and changes nothing. Only a rule that is exactly as [Steer] makes it counts: the
// same port alone, to the same queue. A driver without rules is [ErrNoRules].
func PlanUnsteer(name string, rules []Rule) ([]Step, error) {
	t, err := readTable(ethtool, name)
	if err != nil {
		return nil, err
	}
	return t.planUnset(rules), nil
}

// Unsteer removes the rules that PlanUnsteer names. It needs CAP_NET_ADMIN.
func Unsteer(name string, rules []Rule) ([]Step, error) { return unsteer(ethtool, name, rules) }

func unsteer(call caller, name string, rules []Rule) ([]Step, error) {
	t, err := readTable(call, name)
	if err != nil {
		return nil, err
	}
	steps := t.planUnset(rules)
	for _, s := range steps {
		if s.Change != ChangeRemoved {
			continue
		}
		if err := t.remove(Placed{Rule: s.Rule, Location: s.Location, Exact: true}); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

func (t *table) planSet(rules []Rule) ([]Step, error) {
	steps := make([]Step, len(rules))
	for i, rule := range rules {
		if p, found := t.findRule(rule); found {
			steps[i] = Step{Rule: rule, Change: ChangeKept, Location: p.Location}
			continue
		}
		if p, found := t.find(func(other Rule) bool { return other.Port == rule.Port }); found {
			return nil, fmt.Errorf("nic: steer port %d of %s to queue %d: %w: rule %d sends it to queue %d; remove that with `%s` first",
				rule.Port, t.name, rule.Queue, ErrRuleConflict, p.Location, p.Queue, CommandDelete(t.name, p.Location))
		}
		steps[i] = Step{Rule: rule, Change: ChangeSet, Command: rule.Command(t.name)}
	}
	return steps, nil
}

func (t *table) planUnset(rules []Rule) []Step {
	steps := make([]Step, len(rules))
	for i, rule := range rules {
		steps[i] = Step{Rule: rule, Change: ChangeAbsent}
		if p, found := t.findRule(rule); found {
			steps[i] = Step{Rule: rule, Change: ChangeRemoved, Location: p.Location, Command: CommandDelete(t.name, p.Location)}
		}
	}
	return steps
}

// checkQueues refuses what the driver would refuse with a bare EINVAL.
func checkQueues(call caller, name string, rules []Rule) error {
	channels, err := channelsBy(call, name)
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if have := channels.Receive(); int(rule.Queue) >= have {
			return fmt.Errorf("nic: %w: queue %d: %s has %d receive queues, from 0 on; `ethtool -L %s combined %d` gives it more",
				ErrNoQueue, rule.Queue, name, have, name, rule.Queue+1)
		}
	}
	return nil
}

// ErrNoQueue means that the interface has no such queue.
var ErrNoQueue = errors.New("no such queue")
