//go:build linux && !portable

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stillwater-rpc/stillwater/hw/nic"
)

// nicSheet is a page of lines with a name each.
type nicSheet struct{ strings.Builder }

func (s *nicSheet) line(name, form string, values ...any) {
	fmt.Fprintf(s, "%-*s  %s\n", firstColumnWidth, name, fmt.Sprintf(form, values...))
}

// nicText is what a person reads of an interface. What is absent is named at the end, so that no line says nothing.
func nicText(n *nic.Status) string {
	s := &nicSheet{}
	s.line("interface", "%s, index %d, %s, MTU %d", n.Interface, n.Index, linkText(n), n.MTUBytes)
	if d := n.Driver; d != nil {
		s.line("driver", "%s", strings.Join(present(d.Name, d.Version, prefixed("firmware ", d.Firmware), prefixed("at ", d.Bus)), ", "))
	}
	if n.NUMANode != nil {
		s.line("NUMA node", "%s, CPUs %s", nodeText(*n.NUMANode), orUnknown(n.LocalCPUs))
	}
	if q := n.Queues; q != nil {
		s.line("queues", "%d rx of at most %d, %d tx of at most %d", q.Rx, q.RxMax, q.Tx, q.TxMax)
	}
	if r := n.Rings; r != nil {
		s.line("rings", "rx %d of at most %d, tx %d of at most %d", r.Rx, r.RxMax, r.Tx, r.TxMax)
	}
	s.steering(n)
	if o := n.Coalescing; o != nil {
		s.line("coalescing", "rx %d us, %d frames, adaptive %s; tx %d us, %d frames, adaptive %s",
			o.RxUsecs, o.RxFrames, onOff(o.AdaptiveRx), o.TxUsecs, o.TxFrames, onOff(o.AdaptiveTx))
	}
	for _, name := range slices.Sorted(maps.Keys(n.Offloads)) {
		s.line("offload", "%s %v", name, n.Offloads[name])
	}
	if x := n.XDP; x != nil {
		s.line("XDP", "%s; metadata: %s", listText(x.Features), listText(x.Metadata))
	}
	s.interrupts(n)
	for _, absent := range []struct {
		name  string
		parts []string
	}{{"driver has no", n.Unsupported}, {"unknown", n.Unknown}} {
		if len(absent.parts) > 0 {
			s.line(absent.name, "%s", strings.Join(absent.parts, ", "))
		}
	}
	return s.String()
}

func (s *nicSheet) steering(n *nic.Status) {
	if r := n.RSS; r != nil {
		s.line("RSS", "%s, key of %d bytes, table of %d entries, by queue %v", r.Function, r.KeyBytes, r.TableSize, r.Entries)
	}
	if n.FlowHash != "" {
		s.line("hash of UDP/IPv4", "%s (sdfn is both addresses and both ports)", n.FlowHash)
	}
	if n.RuleCount != nil {
		s.line("steering rules", "%d", *n.RuleCount)
	}
}

// interrupts prints which CPU works for which queue.
func (s *nicSheet) interrupts(n *nic.Status) {
	for _, p := range n.NAPIs {
		irq := "unknown"
		if p.IRQ != nil {
			irq = fmt.Sprint(*p.IRQ)
		}
		s.line("NAPI", "%d: rx queues %v, tx queues %v, interrupt %s", p.ID, p.RxQueues, p.TxQueues, irq)
	}
	for _, i := range n.Interrupts {
		s.line("interrupt", "%d (%s) on CPUs %s", i.IRQ, orUnknown(i.Action), orUnknown(i.CPUs))
	}
}

func linkText(n *nic.Status) string {
	switch {
	case !n.Up:
		return "down"
	case !n.Carrier:
		return "up without a carrier"
	}
	return "up"
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func listText(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// present leaves out what is empty.
func present(words ...string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return word == "" })
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// nodeText is the kernel's number of a node.
func nodeText(node int) string {
	if node < 0 {
		return "not said"
	}
	return strconv.Itoa(node)
}
