//go:build linux && !portable

package main

import (
	"fmt"
	"strings"

	"github.com/stillwater-rpc/stillwater/bpf"
)

// statusText is what a person reads of xdp status.
func statusText(all []interfaceStatus) string {
	width := 0
	for _, s := range all {
		width = max(width, len(s.Interface))
	}
	var text strings.Builder
	for _, s := range all {
		fmt.Fprintf(&text, "%-*s  %s\n", width, s.Interface, programText(s))
		indent := strings.Repeat(" ", width+2)
		if s.Attached {
			fmt.Fprintf(&text, "%s%s\n", indent, holdersText(s))
		}
		if s.Pins != nil && s.Pins.Link != bpf.AttachmentLive.String() {
			fmt.Fprintf(&text, "%sprogram %d is pinned in %s, link %s\n", indent, s.Pins.ProgramID, s.Pins.Path, s.Pins.Link)
		}
		if len(s.Services) > 0 {
			fmt.Fprintf(&text, "%sservices %s\n", indent, strings.Join(s.Services, ", "))
		}
		for _, socket := range s.Sockets {
			fmt.Fprintf(&text, "%squeue %d of %d: %s\n", indent, socket.Queue, s.QueueCount, socketText(socket))
		}
		text.WriteString(verdictsText(s.verdicts, indent))
	}
	return text.String()
}

func socketText(s socketStatus) string {
	text := fmt.Sprintf("socket of process %d (%s)", s.PID, s.Command)
	if !s.Visible {
		text += ", which cannot be seen: it died, or is in another PID namespace"
	}
	return text
}

// verdictsText shows what happened at all.
func verdictsText(verdicts []bpf.VerdictCount, indent string) string {
	var text strings.Builder
	for _, v := range verdicts {
		if v.Count > 0 {
			fmt.Fprintf(&text, "%s%-20s %d packets\n", indent, v.Reason, v.Count)
		}
	}
	return text.String()
}

func programText(s interfaceStatus) string {
	if !s.Attached {
		return "no program"
	}
	name, whose := s.Name, "not ours"
	switch {
	case s.Ours:
		whose = "ours"
	case name == "":
		name, whose = "name unknown", "owner unknown"
	}
	return fmt.Sprintf("program %d (%s) in %s mode, %s", s.ProgramID, name, s.Mode, whose)
}

func holdersText(s interfaceStatus) string {
	if s.LinkID == 0 {
		return "held by no bpf_link that can be seen"
	}
	if len(s.Holders) == 0 && s.Pins != nil {
		return fmt.Sprintf("held by bpf_link %d, pinned in %s", s.LinkID, s.Pins.Path)
	}
	if len(s.Holders) == 0 {
		return fmt.Sprintf("held by bpf_link %d of no visible process", s.LinkID)
	}
	names := make([]string, len(s.Holders))
	for i, h := range s.Holders {
		names[i] = fmt.Sprintf("process %d (%s)", h.PID, h.Command)
	}
	return fmt.Sprintf("held by bpf_link %d of %s", s.LinkID, strings.Join(names, ", "))
}
