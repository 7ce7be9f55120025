//go:build linux

package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Mode is where an XDP program runs.
type Mode uint8

// The modes.
const (
	ModeAuto    Mode = iota // native where the driver can, else generic
	ModeNative              // in the driver, before a socket buffer exists
	ModeGeneric             // in the kernel's stack, any device
	ModeOffload             // on the NIC; only ever seen on others' programs
)

// String returns native, generic, offload or auto.
func (m Mode) String() string {
	return [...]string{"auto", "native", "generic", "offload"}[m&3]
}

// modeOf is the mode of what netlink says is attached.
func modeOf(xdp *netlink.LinkXdp) Mode {
	switch xdp.AttachMode {
	case nl.XDP_ATTACHED_DRV:
		return ModeNative
	case nl.XDP_ATTACHED_SKB:
		return ModeGeneric
	case nl.XDP_ATTACHED_HW:
		return ModeOffload
	}
	return ModeAuto
}

func (m Mode) flags() link.XDPAttachFlags {
	switch m {
	case ModeNative:
		return link.XDPDriverMode
	case ModeGeneric:
		return link.XDPGenericMode
	case ModeOffload:
		return link.XDPOffloadMode
	}
	return 0
}

// Process is a process that holds a link.
type Process struct {
	PID     int
	Command string
}

// Status is what runs at an interface's XDP hook.
type Status struct {
	Interface string
	Index     int
	Attached  bool   // the fields below are set only if so
	ProgramID uint32 // the kernel's id of the program
	Name      string // its name, empty if we may not ask
	Mode      Mode
	Ours      bool      // by its name, its pin or its map of owners, whichever process attached it
	LinkID    uint32    // the bpf_link that holds it; 0 if it was attached by netlink
	Holders   []Process // processes with a descriptor of that link; none if it is pinned or theirs is not ours to see
	Pin       string    // the pin of that link, if it is in a folder of PinRoot or one that was named
}

// HeldError says that an interface runs a program that we may not replace or remove.
type HeldError struct {
	Interface string
	ProgramID uint32
	Name      string
	Mode      Mode
	LinkID    uint32    // 0: attached by netlink
	Holders   []Process // of the link, as far as they can be seen
	Pin       string    // of the link, as far as it was found
}

// Error names the holder and the cure.
func (e *HeldError) Error() string {
	name := e.Name
	if name == "" {
		name = "name unknown"
	}
	text := fmt.Sprintf("bpf: %s runs XDP program %d (%s) in %v mode", e.Interface, e.ProgramID, name, e.Mode)
	switch {
	case len(e.Holders) > 0:
		names := make([]string, len(e.Holders))
		for i, holder := range e.Holders {
			names[i] = fmt.Sprintf("process %d (%s)", holder.PID, holder.Command)
		}
		return text + ", held by " + strings.Join(names, ", ") + ": stop the holder, or use another interface"
	case e.Pin != "":
		dir := filepath.Dir(e.Pin)
		return text + fmt.Sprintf(", held by the pin %s: share it with `--pin-path %s`, or end it with `stillwater xdp detach %s --pin-path %s`, "+
			"or use another interface", e.Pin, dir, e.Interface, dir)
	case e.LinkID != 0:
		return text + fmt.Sprintf(", held by bpf_link %d of no visible process: remove its pin in the bpf file system, "+
			"or stop its owner, or use another interface", e.LinkID)
	case e.Name == programName:
		return text + ", left by another instance: run `stillwater xdp detach " + e.Interface + "`"
	}
	return text + ": stop its owner, or remove it with `ip link set dev " + e.Interface + " xdp off`, or use another interface"
}

// programName is how the kernel knows our program; it must fit the 15 characters of BPF_OBJ_NAME_LEN.
const programName = steerProgStillwaterXdp

// Held is the error for whoever finds the interface like that.
func (s *Status) Held() *HeldError {
	return &HeldError{s.Interface, s.ProgramID, s.Name, s.Mode, s.LinkID, s.Holders, s.Pin}
}

// Inspect reports what runs at the XDP hook of an interface of the calling thread's network namespace. It changes nothing.
// What it may not see (name, link, holders) without CAP_SYS_ADMIN stays empty. The link's pin is looked for in the folders of
// PinRoot and in those that are named.
func Inspect(ifname string, pinPaths ...string) (*Status, error) {
	device, err := netlink.LinkByName(ifname)
	if err != nil {
		return nil, fmt.Errorf("bpf: inspect %s: %w", ifname, err)
	}
	attrs := device.Attrs()
	status := &Status{Interface: ifname, Index: attrs.Index}
	if attrs.Xdp == nil || !attrs.Xdp.Attached {
		return status, nil
	}
	status.Attached, status.ProgramID, status.Mode = true, attrs.Xdp.ProgId, modeOf(attrs.Xdp)
	status.Name = nameOf(ebpf.ProgramID(status.ProgramID))
	status.LinkID, err = linkOf(status.Index, ebpf.ProgramID(status.ProgramID))
	if err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("bpf: inspect the links of %s: %w", ifname, err)
	}
	if status.LinkID != 0 {
		status.Holders = holdersOf(status.LinkID)
		status.Pin = pinOf(status.LinkID, pinPaths)
	}
	status.Ours = status.Name == programName || status.Pin != "" || hasOwners(status.ProgramID)
	return status, nil
}

// hasOwners reports whether a program has what every one has that we loaded, whatever its name.
func hasOwners(programID uint32) bool {
	owners, err := mapOf(ebpf.ProgramID(programID), contractOwners)
	return err == nil && owners != nil && owners.Close() == nil
}

func nameOf(id ebpf.ProgramID) string {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return "" // no right to ask, or gone meanwhile
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// linkOf finds the link that attaches a program to an interface; 0 means there is none.
func linkOf(ifindex int, program ebpf.ProgramID) (uint32, error) {
	links := &link.Iterator{}
	defer links.Close()
	for links.Next() {
		info, err := links.Link.Info()
		if err != nil {
			continue // gone meanwhile
		}
		// Program ids are unique on the host; interface indexes only within a namespace.
		if xdp := info.XDP(); xdp != nil && info.Program == program && int(xdp.Ifindex) == ifindex {
			return uint32(info.ID), nil
		}
	}
	return 0, links.Err()
}

// holdersOf looks for descriptors of a link (kernel/bpf/syscall.c, bpf_link_show_fdinfo prints link_id).
func holdersOf(linkID uint32) []Process {
	var holders []Process
	wanted := []byte(fmt.Sprintf("link_id:\t%d\n", linkID))
	directories, _ := filepath.Glob("/proc/[0-9]*/fdinfo") // the pattern is constant and well formed
	for _, directory := range directories {
		entries, err := os.ReadDir(directory)
		if err != nil {
			continue // not ours to see, or gone
		}
		for _, entry := range entries {
			content, err := os.ReadFile(filepath.Join(directory, entry.Name()))
			if err != nil || !bytes.Contains(content, wanted) {
				continue
			}
			process := filepath.Dir(directory)
			pid, _ := strconv.Atoi(filepath.Base(process)) // the pattern admits digits first
			command, _ := os.ReadFile(filepath.Join(process, "comm"))
			holders = append(holders, Process{pid, string(bytes.TrimSpace(command))})
			break
		}
	}
	return holders
}

// Detach removes a program of ours, by name, that was attached by netlink and so outlived its process. What is not
// ours, and what a bpf_link holds, is refused with a [*HeldError]; nothing attached is [ErrNotAttached].
func Detach(ifname string) error {
	status, err := Inspect(ifname)
	if err != nil {
		return err
	}
	if !status.Attached {
		return fmt.Errorf("bpf: detach from %s: %w", ifname, ErrNotAttached)
	}
	if !status.Ours || status.LinkID != 0 {
		return status.Held()
	}
	program, err := ebpf.NewProgramFromID(ebpf.ProgramID(status.ProgramID))
	if err != nil {
		return fmt.Errorf("bpf: detach from %s: open program %d: %w", ifname, status.ProgramID, err)
	}
	defer program.Close()
	// The expected program makes look and removal one step: what somebody attached in between is not removed.
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	header := nl.NewIfInfomsg(unix.AF_UNSPEC)
	header.Index = int32(status.Index)
	request.AddData(header)
	const remove = ^uint32(0) // a program descriptor of -1
	xdp := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
	xdp.AddRtAttr(unix.IFLA_XDP_FD, nl.Uint32Attr(remove))
	xdp.AddRtAttr(unix.IFLA_XDP_FLAGS, nl.Uint32Attr(uint32(status.Mode.flags())|unix.XDP_FLAGS_REPLACE))
	xdp.AddRtAttr(unix.IFLA_XDP_EXPECTED_FD, nl.Uint32Attr(uint32(program.FD())))
	request.AddData(xdp)
	if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("bpf: detach program %d from %s: %w", status.ProgramID, ifname, err)
	}
	return nil
}
