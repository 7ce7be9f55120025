//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// Attachment is how a pinned program is attached.
type Attachment uint8

// The attachments.
const (
	AttachmentNone    Attachment = iota // no link is pinned
	AttachmentLive                      // the kernel runs the program at an interface
	AttachmentDefunct                   // the link leads nowhere: its interface is gone, or somebody detached it by force
)

// String returns none, live or defunct.
func (a Attachment) String() string {
	return [...]string{"none", "live", "defunct"}[a]
}

// Pins is a folder of pins, for whoever may change it. Its methods have one caller at a time.
type Pins struct {
	Dir     string
	Program *Program // its Attach attaches anew; use Pins.Attach to have that pinned

	ProgramID uint32
	Link      Attachment
	LinkID    uint32 // 0: none
	Ifindex   int    // of a live link, in the namespace of the interface
}

// OpenPins opens what [Program.Pin] pinned. Nothing pinned is [ErrNoPins].
func OpenPins(dir string) (*Pins, error) {
	if err := checkPins(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, openPinnedError(dir, err)
		}
		return nil, err
	}
	program, err := openPinned(dir)
	if err != nil {
		return nil, err
	}
	s := &Pins{Dir: dir, Program: program}
	if err := s.look(); err != nil {
		return nil, errors.Join(fmt.Errorf("bpf: look at the pins in %s: %w", dir, err), s.Close())
	}
	return s, nil
}

func (s *Pins) look() error {
	info, err := s.Program.objects.StillwaterXdp.Info()
	if err != nil {
		return err
	}
	id, _ := info.ID() // known since 4.13
	s.ProgramID = uint32(id)
	s.Link, s.LinkID, s.Ifindex, err = lookAtLink(filepath.Join(s.Dir, pinLink))
	return err
}

// lookAtLink says what a pinned link is.
func lookAtLink(path string) (state Attachment, id uint32, ifindex int, err error) {
	pinned, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return AttachmentNone, 0, 0, nil
	}
	if err != nil {
		return 0, 0, 0, err
	}
	info, err := pinned.Info()
	if err = errors.Join(err, pinned.Close()); err != nil {
		return 0, 0, 0, err
	}
	xdp := info.XDP()
	switch {
	case xdp == nil:
		return 0, 0, 0, fmt.Errorf("the link there is of type %v, it has to be XDP", info.Type)
	case xdp.Ifindex == 0: // the device is gone (net/core/dev.c, bpf_xdp_link_fill_link_info)
		return AttachmentDefunct, uint32(info.ID), 0, nil
	}
	return AttachmentLive, uint32(info.ID), int(xdp.Ifindex), nil
}

// Attach attaches the pinned program to an interface of the calling thread's network namespace and pins the link, in the place of a defunct one.
// A live one elsewhere is [ErrAttached].
func (s *Pins) Attach(ifindex int, mode Mode) (Mode, error) {
	if s.Link == AttachmentLive {
		return mode, fmt.Errorf("%w, to interface %d: detach it there first", ErrAttached, s.Ifindex)
	}
	mode, err := s.Program.Attach(ifindex, mode)
	if err != nil {
		return mode, err
	}
	err = os.Remove(filepath.Join(s.Dir, pinLink))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.Program.pinLink(s.Dir)
	}
	// Where it is pinned, the pin alone holds the link from here on.
	if err := errors.Join(err, s.Program.Detach()); err != nil {
		return mode, err
	}
	return mode, s.look()
}

// detachMax is how long the kernel may take to detach a program whose link nobody holds any more: it leaves that to a worker of its own
// (kernel/bpf/syscall.c, bpf_link_put), which is a matter of microseconds on an idle machine.
const detachMax = 2 * time.Second

// Detach removes the pin of the link, which detaches the program unless somebody else holds the link: the error says who. Program and
// maps stay pinned. Without a link it is [ErrNotAttached]. When it returns, the program is off the interface, as seen from the calling thread's network namespace.
func (s *Pins) Detach() error {
	if s.Link == AttachmentNone {
		return ErrNotAttached
	}
	if err := os.Remove(filepath.Join(s.Dir, pinLink)); err != nil {
		return fmt.Errorf("bpf: remove the pin of the link: %w", err)
	}
	live, id, ifindex := s.Link == AttachmentLive, s.LinkID, s.Ifindex
	if err := s.look(); err != nil {
		return err
	}
	if !live {
		return nil
	}
	if holders := holdersOf(id); len(holders) > 0 {
		return fmt.Errorf("bpf: link %d is not pinned any more, but %w", id, heldBy(holders))
	}
	if !s.leaves(ifindex) {
		return fmt.Errorf("bpf: link %d is not pinned any more, but still there: a process holds it that cannot be seen from here, and it ends with that", id)
	}
	return nil
}

// leaves waits until the program has left an interface, and reports whether it has.
func (s *Pins) leaves(ifindex int) bool {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		device, err := netlink.LinkByIndex(ifindex)
		if err != nil { // it is not there either
			return true
		}
		if xdp := device.Attrs().Xdp; xdp == nil || !xdp.Attached || xdp.ProgId != s.ProgramID {
			return true
		}
		if time.Since(began) > detachMax {
			return false
		}
	}
}

func heldBy(holders []Process) error {
	names := make([]string, len(holders))
	for i, h := range holders {
		names[i] = fmt.Sprintf("process %d (%s)", h.PID, h.Command)
	}
	return errors.New("held by " + strings.Join(names, ", ") + ": it ends with that")
}

// Remove detaches the program and removes all its pins.
func (s *Pins) Remove() error {
	if err := s.Detach(); err != nil && !errors.Is(err, ErrNotAttached) {
		return err
	}
	return RemovePins(s.Dir)
}

// Close gives the pins' descriptors up; the pins stay.
func (s *Pins) Close() error { return s.Program.Close() }

// Leftover is what became of a folder of pins in [Clean].
type Leftover struct {
	Dir     string
	Removed bool   // or, in a dry run, it would be
	Reason  string // why, or why not
}

// Clean removes the pins in the folders of a root that lead nowhere: of a link whose interface is gone, of a load that was interrupted. It
// removes nothing that is attached, and nothing that is not ours.
func Clean(root string, dryRun bool) ([]Leftover, error) {
	if err := CheckPinPath(root); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("bpf: look for pins: %w", err)
	}
	var found []Leftover
	for _, entry := range entries {
		if !entry.IsDir() {
			continue // the kernel's own, at the top, or somebody's
		}
		left := Leftover{Dir: filepath.Join(root, entry.Name())}
		if left.Removed, left.Reason = stale(left.Dir); left.Removed && !dryRun {
			if err := RemovePins(left.Dir); err != nil {
				return found, err
			}
		}
		found = append(found, left)
	}
	return found, nil
}

// stale judges a folder of pins.
func stale(dir string) (bool, string) {
	if err := checkPins(dir); err != nil {
		return false, err.Error()
	}
	var pid int
	if n, _ := fmt.Sscanf(filepath.Base(dir), pinLoading+"%d-", &pid); n == 1 {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			return false, fmt.Sprintf("process %d is loading it", pid)
		}
		return true, "its load was interrupted"
	}
	state, _, ifindex, err := lookAtLink(filepath.Join(dir, pinLink))
	switch {
	case err != nil:
		return false, err.Error()
	case state == AttachmentLive:
		return false, fmt.Sprintf("attached to interface %d", ifindex)
	case state == AttachmentDefunct:
		return true, "its link is defunct: the interface is gone, or somebody detached it by force"
	}
	pins, err := OpenPins(dir)
	switch {
	case errors.Is(err, ErrNoPins):
		return true, "pins are missing"
	case err != nil:
		return false, err.Error()
	case pins.Close() != nil:
		return false, "cannot be closed"
	}
	return false, "detached, and ready to be attached"
}
