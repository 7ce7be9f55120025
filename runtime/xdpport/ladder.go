//go:build linux

package xdpport

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// sockets are the ways to bind that a mode allows, in the order of trial. Auto tries zero-copy and copy on one socket: a second one would count its
// memory once more against the limit, since the kernel forgets the first in the background. Only zero-copy that has no program is given up for copy.
func (m Mode) sockets() []xsk.Mode {
	switch m {
	case ModeZeroCopy:
		return []xsk.Mode{xsk.ModeZeroCopy}
	case ModeCopy, ModeGeneric:
		return []xsk.Mode{xsk.ModeCopy}
	}
	return []xsk.Mode{xsk.ModeAuto, xsk.ModeCopy}
}

// program is how the program may be attached for sockets that are bound in a mode, copy or zero-copy. Generic mode is only for those that copy: it hands over what the
// kernel has copied into a socket buffer already, so with zero-copy only sending would be what it says.
func (m Mode) program(sockets xsk.Mode) bpf.Mode {
	switch {
	case m == ModeGeneric:
		return bpf.ModeGeneric
	case m == ModeAuto && sockets == xsk.ModeCopy:
		return bpf.ModeAuto
	}
	return bpf.ModeNative
}

// climb tries the ways to bind that are allowed, best first. It goes on to the next only where the driver, or the program that is
// shared, does not have one: any other fault would just be hidden.
func (m Mode) climb(try func(xsk.Mode) error) (err error) {
	for _, sockets := range m.sockets() {
		if err = try(sockets); !notToBeHad(err) {
			break
		}
	}
	return err
}

func notToBeHad(err error) bool { return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, ErrMode) }

// reason says why a rung was chosen that is not the best: nothing but the driver leads there, and whoever named it knows.
func (m Mode) reason(xdp bpf.Mode, sockets xsk.Mode) string {
	switch {
	case m != ModeAuto || sockets != xsk.ModeCopy:
		return ""
	case xdp == bpf.ModeGeneric:
		return " (no native XDP there)"
	}
	return " (no zero-copy there)"
}

// attach attaches the program in a mode. One that is shared is attached already, and whoever did that chose.
func (c *Config) attach(program *bpf.Program, ifindex int, want bpf.Mode) (bpf.Mode, error) {
	mode, err := program.Attach(ifindex, want)
	if err == nil && want != bpf.ModeAuto && mode != want {
		return mode, fmt.Errorf("%w: the program in %s is attached to %s in %v mode, and it takes %v: have `stillwater xdp load` attach it so with --mode, or choose another mode here",
			ErrMode, c.PinPath, c.Interface, mode, want)
	}
	return mode, err
}
