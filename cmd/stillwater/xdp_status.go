package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bpf"
)

const schemaStatus = "stillwater.xdp_status.v1"

// interfaceStatus is one interface as JSON.
type interfaceStatus struct {
	Interface string            `json:"interface"`
	Index     int               `json:"index"`
	Attached  bool              `json:"attached"`
	ProgramID uint32            `json:"program_id,omitempty"`
	Name      string            `json:"name,omitempty"` // of the program, empty if we may not ask
	Mode      string            `json:"mode,omitempty"` // native, generic or offload
	Ours      bool              `json:"ours"`
	LinkID    uint32            `json:"link_id,omitempty"` // 0: attached by netlink
	Holders   []holder          `json:"holders,omitempty"`
	Verdicts  map[string]uint64 `json:"verdict_counts,omitempty"` // of ours, by reason

	verdicts []bpf.VerdictCount // the same in their order
}

// holder is a process that holds a program.
type holder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

const xdpStatusLong = `Show what runs at the XDP hook of an interface, or of all in this network namespace: the program, its mode, whether it is ours,
which processes hold it, and what ours did with the packets, by reason. It changes nothing. Without root, the
program's name, its holders and the counters stay unknown.`

func newXDPStatus(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "status [INTERFACE]",
		Short:   "Show the XDP programs of the interfaces, and what ours did with the packets",
		Long:    xdpStatusLong,
		Example: "  stillwater xdp status eth1 -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := checkInterface(args[0]); err != nil {
					return err
				}
				return status(c, args)
			}
			names, err := interfaceNames()
			if err != nil {
				return err
			}
			return status(c, names)
		},
	}
}

func status(c *cli, names []string) error {
	all := make([]interfaceStatus, len(names))
	for i, name := range names {
		var err error
		if all[i], err = statusOf(c, name); err != nil {
			return err
		}
	}
	switch {
	case c.text():
		return c.print(statusText(all))
	case c.format == formatJSON:
		return c.printObject(schemaStatus, struct {
			Interfaces []interfaceStatus `json:"interfaces"`
		}{all})
	}
	for _, s := range all {
		if err := c.printLine(schemaStatus, s); err != nil {
			return err
		}
	}
	return nil
}

func statusOf(c *cli, name string) (interfaceStatus, error) {
	found, err := bpf.Inspect(name)
	if err != nil {
		return interfaceStatus{}, err
	}
	s := asStatus(found)
	if !s.Ours {
		return s, nil
	}
	s.verdicts, err = bpf.VerdictsOf(s.ProgramID)
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, bpf.ErrNoCounters):
		c.warn("the verdict counters cannot be read", "interface", name, "err", err)
		return s, nil
	case err != nil:
		return s, err
	}
	s.Verdicts = make(map[string]uint64, len(s.verdicts))
	for _, v := range s.verdicts {
		s.Verdicts[v.Reason.String()] = v.Count
	}
	return s, nil
}

// asStatus is what is printed of an interface, but for the counters.
func asStatus(found *bpf.Status) interfaceStatus {
	s := interfaceStatus{Interface: found.Interface, Index: found.Index, Attached: found.Attached}
	if !found.Attached {
		return s
	}
	s.ProgramID, s.Name, s.Mode, s.Ours, s.LinkID = found.ProgramID, found.Name, found.Mode.String(), found.Ours, found.LinkID
	for _, process := range found.Holders {
		s.Holders = append(s.Holders, holder(process))
	}
	return s
}

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
		for _, v := range s.verdicts {
			if v.Count > 0 {
				fmt.Fprintf(&text, "%s%-20s %d packets\n", indent, v.Reason, v.Count)
			}
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
	if len(s.Holders) == 0 {
		return fmt.Sprintf("held by bpf_link %d of no visible process", s.LinkID)
	}
	names := make([]string, len(s.Holders))
	for i, h := range s.Holders {
		names[i] = fmt.Sprintf("process %d (%s)", h.PID, h.Command)
	}
	return fmt.Sprintf("held by bpf_link %d of %s", s.LinkID, strings.Join(names, ", "))
}
