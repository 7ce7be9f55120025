//go:build linux && !portable

package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/hw/nic"
)

const schemaSteer = "stillwater.nic_steer.v1"

// steerFlags are the flags of nic steer.
type steerFlags struct {
	port   uint16
	queue  uint32
	queues int
	unset  bool
	dryRun bool
}

// steerData is what nic steer prints as JSON.
type steerData struct {
	Interface string      `json:"interface"`
	DryRun    bool        `json:"dry_run"` // then nothing was changed, and change says what would be
	Rules     []steerRule `json:"rules"`
}

// steerRule is one rule as JSON.
type steerRule struct {
	Port     uint16  `json:"port"`
	Queue    uint32  `json:"queue"`
	Change   string  `json:"change"`             // set, kept, removed or absent
	Location *uint32 `json:"location,omitempty"` // of a rule that is or was there
	Command  string  `json:"command,omitempty"`  // of ethtool, which does the same
}

const nicSteerLong = `Steer a UDP port to one receive queue by a rule in the NIC, which matches UDP over IPv4 with exactly that destination port. With --queues,
the ports from there on are steered to as many queues, one each. A rule that is there already is kept; one that sends the port elsewhere
is refused. When one of several fails, those that were set are removed again.

--unset removes these rules, and only if they are exactly so: a rule that matches anything else as well, or goes to another queue, stays.
--dry-run shows what would be done, with the command of ethtool for it, and changes nothing.

It needs CAP_NET_ADMIN. A driver without such rules is exit code 3: open a socket on every queue instead, as serve does, or give the
interface one queue.`

func newNICSteer(c *cli) *cobra.Command {
	f := &steerFlags{}
	cmd := &cobra.Command{
		Use:   "steer INTERFACE --port PORT",
		Short: "Steer a UDP port to a receive queue by a rule in the NIC",
		Long:  nicSteerLong,
		Example: "  stillwater nic steer eth1 --port 7700 --queue 3\n" +
			"  stillwater nic steer eth1 --port 7700 --queues 4 --dry-run\n" +
			"  stillwater nic steer eth1 --port 7700 --queues 4 --unset",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	flags := cmd.Flags()
	flags.Uint16Var(&f.port, "port", 0, "UDP destination `port`; the first of several")
	flags.Uint32Var(&f.queue, "queue", 0, "receive `queue` that it goes to; the first of several")
	flags.IntVar(&f.queues, "queues", 1, "steer this `number` of ports from --port on to as many queues from --queue on")
	flags.BoolVar(&f.unset, "unset", false, "remove the rules instead")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and change nothing")
	return cmd
}

// rules are those that the flags mean.
func (f *steerFlags) rules() ([]nic.Rule, error) {
	switch last := int(f.port) + f.queues - 1; {
	case f.port == 0:
		return nil, usageError("--port is needed: a UDP port from 1 to %d, like %d", math.MaxUint16, defaultPort)
	case f.queues < 1:
		return nil, usageError("--queues %d: it must be at least 1", f.queues)
	case last > math.MaxUint16:
		return nil, usageError("--port %d --queues %d: the last port would be %d, and ports end at %d", f.port, f.queues, last, math.MaxUint16)
	case int64(f.queue)+int64(f.queues)-1 > math.MaxUint32:
		return nil, usageError("--queue %d --queues %d: no queue has such a number", f.queue, f.queues)
	}
	rules := make([]nic.Rule, f.queues)
	for i := range rules {
		rules[i] = nic.Rule{Port: f.port + uint16(i), Queue: f.queue + uint32(i)}
	}
	return rules, nil
}

func (f *steerFlags) run(c *cli, name string) error {
	rules, err := f.rules()
	if err != nil {
		return err
	}
	if err := checkInterface(name); err != nil {
		return err
	}
	steps, err := f.carryOut()(name, rules)
	if f.dryRun && steps != nil && errors.Is(err, nic.ErrNoRules) {
		c.warn("these rules would be refused", "interface", name, "err", err)
		err = nil
	}
	for _, refusal := range []error{nic.ErrNoRules, nic.ErrRuleConflict, nic.ErrRulesFull, nic.ErrNoQueue} {
		if errors.Is(err, refusal) {
			return checkError(err)
		}
	}
	if err != nil {
		return err
	}
	data := f.data(name, steps)
	if !c.text() {
		return c.printObject(schemaSteer, data)
	}
	return c.print(data.text())
}

// carryOut picks one of four.
func (f *steerFlags) carryOut() func(string, []nic.Rule) ([]nic.Step, error) {
	switch {
	case f.dryRun && f.unset:
		return nic.PlanUnsteer
	case f.dryRun:
		return nic.PlanSteer
	case f.unset:
		return nic.Unsteer
	}
	return nic.Steer
}

func (f *steerFlags) data(name string, steps []nic.Step) steerData {
	data := steerData{Interface: name, DryRun: f.dryRun, Rules: make([]steerRule, len(steps))}
	for i, s := range steps {
		data.Rules[i] = steerRule{Port: s.Port, Queue: s.Queue, Change: string(s.Change), Command: s.Command}
		if s.Change != nic.ChangeAbsent && !(f.dryRun && s.Change == nic.ChangeSet) {
			data.Rules[i].Location = &steps[i].Location
		}
	}
	return data
}

func (d steerData) text() string {
	var text strings.Builder
	for _, r := range d.Rules {
		change := r.Change
		if d.DryRun {
			change = map[string]string{
				string(nic.ChangeSet): "would be set", string(nic.ChangeRemoved): "would be removed",
				string(nic.ChangeKept): "is there already", string(nic.ChangeAbsent): "is not there",
			}[change]
		}
		fmt.Fprintf(&text, "%s: port %d to queue %d: %s\n", d.Interface, r.Port, r.Queue, change)
		if r.Command != "" && d.DryRun {
			fmt.Fprintf(&text, "    %s\n", r.Command)
		}
	}
	return text.String()
}
