//go:build linux && !portable

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/nic"
)

const schemaStatus = "stillwater.xdp_status.v1"

// interfaceStatus is one interface as JSON.
type interfaceStatus struct {
	Interface  string            `json:"interface"`
	Index      int               `json:"index"`
	QueueCount int               `json:"queue_count"` // receive queues
	Attached   bool              `json:"attached"`
	ProgramID  uint32            `json:"program_id,omitempty"`
	Name       string            `json:"name,omitempty"` // of the program, empty if we may not ask
	Mode       string            `json:"mode,omitempty"` // native, generic or offload
	Ours       bool              `json:"ours"`
	LinkID     uint32            `json:"link_id,omitempty"` // 0: attached by netlink
	Holders    []holder          `json:"holders,omitempty"`
	Pins       *pinsStatus       `json:"pins,omitempty"`
	Services   []string          `json:"services,omitempty"`       // of ours: address:port
	Sockets    []socketStatus    `json:"sockets,omitempty"`        // of ours, by queue
	Verdicts   map[string]uint64 `json:"verdict_counts,omitempty"` // of ours, by reason

	verdicts []bpf.VerdictCount // the same in their order
}

// holder is a process that holds a program.
type holder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

// pinsStatus is what is pinned for an interface, whether or not it is attached.
type pinsStatus struct {
	Path      string `json:"pin_path"`
	ProgramID uint32 `json:"pinned_program_id"`
	Link      string `json:"pinned_link"` // none, live or defunct
}

// socketStatus is a queue that has a socket.
type socketStatus struct {
	Queue uint32 `json:"queue"`
	holder
	Visible bool `json:"visible"` // there is such a process; if not, it died or is in another PID namespace
}

const xdpStatusLong = `Show what runs at the XDP hook of an interface, or of all in this network namespace: the program, its mode, whether it is ours,
which processes or pins hold it, and of ours the services, the queues with sockets, and what it did with the packets, by reason.
It changes nothing. Without root, what may not be seen stays unknown.`

func newXDPStatus(c *cli) *cobra.Command {
	pin := &pinFlag{}
	cmd := &cobra.Command{
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
				return status(c, pin, args)
			}
			names, err := interfaceNames()
			if err != nil {
				return err
			}
			return status(c, pin, names)
		},
	}
	pin.register(cmd.Flags())
	return cmd
}

func status(c *cli, pin *pinFlag, names []string) error {
	all := make([]interfaceStatus, len(names))
	for i, name := range names {
		var err error
		if all[i], err = statusOf(c, name, pin.of(name)); err != nil {
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

func statusOf(c *cli, name, pinPath string) (s interfaceStatus, err error) {
	found, err := bpf.Inspect(name, pinPath)
	if err != nil {
		return s, err
	}
	channels, err := nic.ChannelsOf(name)
	if err != nil {
		return s, err
	}
	s = asStatus(found)
	s.QueueCount = channels.Receive()
	s.pinned(c, pinPath)
	if found.Pin != "" && s.Pins == nil {
		s.pinned(c, filepath.Dir(found.Pin))
	}
	if !s.Ours {
		return s, nil
	}
	err = s.readMaps()
	if s.Pins != nil && err != nil && errors.Is(err, bpf.ErrNoCounters) {
		err = nil // a user's program need not count
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, bpf.ErrNoCounters) {
		c.warn("not all of the program's maps can be read", "interface", name, "err", err)
		return s, nil
	}
	return s, err
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

// pinned looks at a folder of pins, if it is there.
func (s *interfaceStatus) pinned(c *cli, dir string) {
	pins, err := bpf.OpenPins(dir)
	if errors.Is(err, bpf.ErrNotBPFFS) || errors.Is(err, bpf.ErrNoPins) && !exists(dir) {
		return
	}
	if err == nil {
		s.Pins = &pinsStatus{pins.Dir, pins.ProgramID, pins.Link.String()}
		err = pins.Close()
	}
	if err != nil {
		c.warn("the pins cannot be read", "interface", s.Interface, "pin_path", dir, "err", err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readMaps reads what the program shares with servers. What can be read is there also when something else cannot.
func (s *interfaceStatus) readMaps() error {
	services, err := bpf.ServicesOf(s.ProgramID)
	s.Services = serviceTexts(services)
	owners, ownersErr := bpf.OwnersOf(s.ProgramID)
	for _, owner := range owners {
		s.Sockets = append(s.Sockets, socketStatus{owner.Queue, holder(owner.Process), owner.Alive()})
	}
	var verdictsErr error
	s.verdicts, verdictsErr = bpf.VerdictsOf(s.ProgramID)
	s.Verdicts = verdictCounts(s.verdicts)
	return errors.Join(err, ownersErr, verdictsErr)
}

// verdictCounts is what JSON shows of the counters.
func verdictCounts(verdicts []bpf.VerdictCount) map[string]uint64 {
	if verdicts == nil {
		return nil
	}
	counts := make(map[string]uint64, len(verdicts))
	for _, v := range verdicts {
		counts[v.Reason.String()] = v.Count
	}
	return counts
}
