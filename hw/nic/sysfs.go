//go:build linux

package nic

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tree is a file system with sys and proc in it: the host's, or a recorded one.
type tree struct{ fs.FS }

// line reads a file of one value; "" if it cannot be had.
func (t tree) line(name string) string {
	data, err := fs.ReadFile(t, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (t tree) number(name string) (int, bool) {
	n, err := strconv.Atoi(t.line(name))
	return n, err == nil
}

// classDirectory is where sysfs shows an interface.
func classDirectory(name string) string { return path.Join("sys/class/net", name) }

// deviceDirectory finds the device of an interface: by its bus address, which is the same in all network namespaces, or through the interface,
// if sysfs shows that same interface. "" = none can be seen.
func (t tree) deviceDirectory(s *Status, trusted bool) string {
	if s.Driver != nil && s.Driver.Bus != "" {
		if d := path.Join("sys/bus/pci/devices", s.Driver.Bus); t.exists(d) {
			return d
		}
	}
	if d := path.Join(classDirectory(s.Interface), "device"); trusted && t.exists(d) {
		return d
	}
	return ""
}

func (t tree) exists(name string) bool {
	_, err := fs.Stat(t, name)
	return err == nil
}

// shows reports whether sysfs shows the interface that we mean: it was perhaps mounted in another network namespace, which may have one of the same name.
func (t tree) shows(s *Status) bool {
	index, ok := t.number(path.Join(classDirectory(s.Interface), "ifindex"))
	return ok && index == s.Index && t.line(path.Join(classDirectory(s.Interface), "address")) == s.HardwareAddress
}

// Interrupt is an interrupt line of the interface's device.
type Interrupt struct {
	IRQ    uint32 `json:"irq"`
	Action string `json:"action,omitempty"` // what /proc/interrupts calls it
	CPUs   string `json:"cpus,omitempty"`   // those that it may run on, like 0-3,8
}

// interrupts lists the message-signalled interrupts of a device.
func (t tree) interrupts(device string) ([]Interrupt, bool) {
	entries, err := fs.ReadDir(t, path.Join(device, "msi_irqs"))
	if err != nil {
		return nil, false
	}
	actions := t.actions()
	var found []Interrupt
	for _, entry := range entries {
		irq, err := strconv.ParseUint(entry.Name(), 10, 32)
		if err != nil {
			continue // no interrupt has such a name
		}
		found = append(found, Interrupt{
			IRQ: uint32(irq), Action: actions[uint32(irq)], CPUs: t.line(path.Join("proc/irq", entry.Name(), "smp_affinity_list")),
		})
	}
	slices.SortFunc(found, func(a, b Interrupt) int { return int(a.IRQ) - int(b.IRQ) })
	return found, true
}

// actions reads what /proc/interrupts calls each line: the last word, after the counts, the controller and the trigger.
func (t tree) actions() map[uint32]string {
	actions := make(map[uint32]string)
	for text := range strings.Lines(t.line("proc/interrupts")) {
		number, rest, found := strings.Cut(text, ":")
		irq, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
		words := strings.Fields(rest)
		if !found || err != nil || len(words) == 0 {
			continue
		}
		if last := words[len(words)-1]; strings.ContainsFunc(last, func(r rune) bool { return r < '0' || r > '9' }) {
			actions[uint32(irq)] = last
		}
	}
	return actions
}
