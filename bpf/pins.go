//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// PinRoot is where programs are pinned unless another place is named: each in a folder with the interface's name.
const PinRoot = "/sys/fs/bpf/stillwater"

// The pins in a folder.
const (
	pinLink    = "link"
	pinProgram = "program"
	// pinLoading begins the name of a folder that is not complete yet.
	pinLoading = "loading-"
)

// pinNames are all names of pins; a folder with anything else in it is not ours. The maps are pinned under their own names.
var pinNames = []string{pinLink, pinProgram, steerMapXsks, steerMapServices, steerMapVerdicts, mapOwners}

var (
	// ErrNotBPFFS means that a path is not on a BPF file system.
	ErrNotBPFFS = errors.New("not on a BPF file system")
	// ErrPinned means that pins are there already.
	ErrPinned = errors.New("pins are there already")
	// ErrNoPins means that there are none, or not all that it takes.
	ErrNoPins = errors.New("no program is pinned there")
)

// PinPath is where the program of an interface is pinned unless another place is named. The file system reserves dots, so that
// the one of a VLAN's name becomes an underscore.
func PinPath(ifname string) string {
	return filepath.Join(PinRoot, strings.ReplaceAll(ifname, ".", "_"))
}

// CheckPinPath finds out whether a folder can be made on a BPF file system. The error is [ErrNotBPFFS] with the command that mounts one.
func CheckPinPath(dir string) error {
	existing := filepath.Clean(dir)
	var stat unix.Statfs_t
	for {
		err := unix.Statfs(existing, &stat)
		if err == nil {
			break
		}
		parent := filepath.Dir(existing)
		if !errors.Is(err, fs.ErrNotExist) || parent == existing {
			return fmt.Errorf("bpf: pin path %s: %w", dir, err)
		}
		existing = parent
	}
	if stat.Type != unix.BPF_FS_MAGIC {
		return fmt.Errorf("bpf: pin path %s: %w: mount one with `mount -t bpf bpf /sys/fs/bpf`, or name a path on one that is mounted",
			dir, ErrNotBPFFS)
	}
	if strings.Contains(strings.TrimPrefix(filepath.Clean(dir), existing), ".") {
		return fmt.Errorf("bpf: pin path %s: a BPF file system has no names with a dot: use another character", dir)
	}
	return nil
}

// Pin makes the program, its maps and its attachment outlive this process, in a folder of a BPF file system that must not exist yet. A group
// other than 0 may then [Adopt] the program, and nothing else. The folder appears at once as a whole; the link is pinned last.
func (p *Program) Pin(dir string, group int) error {
	if err := p.PinMaps(dir, group); err != nil {
		return err
	}
	if err := p.pinLink(dir); err != nil {
		return errors.Join(err, RemovePins(dir))
	}
	return nil
}

// PinMaps is Pin without the attachment: others may share the program, and it is detached when this process ends, however that comes about.
func (p *Program) PinMaps(dir string, group int) (err error) {
	if err := CheckPinPath(dir); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("bpf: pin path %s: %w", dir, ErrPinned)
	}
	parent, name := filepath.Split(filepath.Clean(dir))
	loading := filepath.Join(parent, fmt.Sprintf("%s%d-%s", pinLoading, os.Getpid(), name))
	if err := errors.Join(os.MkdirAll(parent, 0o755), os.Mkdir(loading, 0o700)); err != nil {
		return fmt.Errorf("bpf: pin path %s: %w", dir, err)
	}
	err = p.pinInto(loading, group)
	if err == nil {
		err = os.Rename(loading, dir)
	}
	if err != nil {
		return fmt.Errorf("bpf: pin in %s: %w", dir, errors.Join(err, RemovePins(loading)))
	}
	return nil
}

// pinInto pins program and maps, with the rights of a group.
func (p *Program) pinInto(dir string, group int) error {
	pin := func(name string, object interface{ Pin(string) error }, mode os.FileMode) error {
		path := filepath.Join(dir, name)
		return errors.Join(object.Pin(path), os.Chown(path, -1, group), os.Chmod(path, mode))
	}
	read, write := os.FileMode(0o600), os.FileMode(0o600)
	if group != 0 {
		read, write = 0o640, 0o660
	}
	errs := []error{
		pin(pinProgram, p.objects.StillwaterXdp, read), pin(steerMapXsks, p.objects.Xsks, write), pin(mapOwners, p.owners, write),
	}
	if p.objects.Services != nil {
		errs = append(errs, pin(steerMapServices, p.objects.Services, write))
	}
	if p.objects.Verdicts != nil {
		errs = append(errs, pin(steerMapVerdicts, p.objects.Verdicts, read))
	}
	return errors.Join(append(errs, os.Chmod(dir, 0o755))...)
}

// pinLink pins the attachment, if there is one.
func (p *Program) pinLink(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attachment == nil {
		return nil
	}
	if err := p.attachment.Pin(filepath.Join(dir, pinLink)); err != nil {
		return fmt.Errorf("bpf: pin the link in %s: %w", dir, err)
	}
	return nil
}

// openPinned opens the program and the maps in a folder.
func openPinned(dir string) (p *Program, err error) {
	p = &Program{}
	open := func(want mapContract, opts *ebpf.LoadPinOptions) (*ebpf.Map, error) {
		found, err := ebpf.LoadPinnedMap(filepath.Join(dir, want.name), opts)
		if err != nil {
			return nil, err
		}
		if err := want.fits(found); err != nil {
			return nil, errors.Join(err, found.Close())
		}
		return found, nil
	}
	optional := func(m *ebpf.Map, err error) (*ebpf.Map, error) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return m, err
	}
	readOnly := &ebpf.LoadPinOptions{ReadOnly: true}
	var errs [5]error
	p.objects.StillwaterXdp, errs[0] = ebpf.LoadPinnedProgram(filepath.Join(dir, pinProgram), readOnly)
	p.objects.Xsks, errs[1] = open(contractXsks, nil)
	p.owners, errs[2] = open(contractOwners, nil)
	p.objects.Services, errs[3] = optional(open(contractServices, nil))
	p.objects.Verdicts, errs[4] = optional(open(contractVerdicts, readOnly))
	err = errors.Join(errs[:]...)
	if err == nil && p.objects.StillwaterXdp.Type() != ebpf.XDP {
		err = fmt.Errorf("the program is of type %v, it has to be XDP", p.objects.StillwaterXdp.Type())
	}
	if err != nil {
		return nil, errors.Join(openPinnedError(dir, err), p.objects.Close(), p.owners.Close())
	}
	return p, nil
}

func openPinnedError(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("bpf: open the pins in %s: %w: `stillwater xdp load` pins one: %w", dir, ErrNoPins, err)
	case errors.Is(err, unix.EACCES):
		err = fmt.Errorf("%w (load with `--group` a group of this user, and give it the way there: `chmod o+x` the BPF file system)", err)
	case errors.Is(err, unix.EPERM):
		err = fmt.Errorf("%w (before Linux 5.19: run with CAP_BPF, or set kernel.unprivileged_bpf_disabled to 0)", err)
	}
	return fmt.Errorf("bpf: open the pins in %s: %w", dir, err)
}

// RemovePins removes a folder of pins: first the link, so that nothing of ours is attached without its maps. What is not ours stays, and is
// an error.
func RemovePins(dir string) error {
	if err := checkPins(dir); err != nil {
		return err
	}
	for _, name := range pinNames {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bpf: remove a pin: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil {
		return fmt.Errorf("bpf: remove the folder of the pins: %w", err)
	}
	return nil
}

// checkPins finds what is not ours in a folder.
func checkPins(dir string) error {
	if err := CheckPinPath(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("bpf: look at the pins: %w", err)
	}
	for _, entry := range entries {
		if !slices.Contains(pinNames, entry.Name()) || !entry.Type().IsRegular() {
			return fmt.Errorf("bpf: %s has %s in it, which is not a pin of ours: nothing there is touched", dir, entry.Name())
		}
	}
	return nil
}

// pinOf finds the pin of a link in the folders of PinRoot and in others; empty means that it was not found.
func pinOf(linkID uint32, dirs []string) string {
	found, _ := filepath.Glob(filepath.Join(PinRoot, "*")) // the pattern is well formed
	for _, dir := range append(slices.Clone(dirs), found...) {
		if strings.HasPrefix(filepath.Base(dir), pinLoading) {
			continue
		}
		path := filepath.Join(dir, pinLink)
		pinned, err := link.LoadPinnedLink(path, nil)
		if err != nil {
			continue // none, or not ours to see
		}
		info, err := pinned.Info()
		if err = errors.Join(err, pinned.Close()); err == nil && uint32(info.ID) == linkID {
			return path
		}
	}
	return ""
}
