package xdpport

import (
	"errors"
	"fmt"
	"strings"
)

// Mode is how packets are to be carried: a rung of the ladder, or the best that is to be had. Naming a rung means exactly that one.
type Mode uint8

// The modes, best first.
const (
	ModeAuto     Mode = iota // the first of the following that works
	ModeZeroCopy             // XDP in the driver, and the NIC reads and writes our memory
	ModeCopy                 // XDP in the driver, and the kernel copies
	ModeGeneric              // XDP in the kernel's stack, on any Ethernet interface; the kernel copies
	ModeUDP                  // kernel UDP
)

var modeNames = [...]string{ModeAuto: "auto", ModeZeroCopy: "zero-copy", ModeCopy: "copy", ModeGeneric: "generic", ModeUDP: "udp"}

// ErrMode says that a mode is none, does not go with the rest of a configuration, or is not to be had on the interface.
var ErrMode = errors.New("mode cannot be had")

// ParseMode reads what String writes.
func ParseMode(text string) (Mode, error) {
	for m, name := range modeNames {
		if text == name {
			return Mode(m), nil
		}
	}
	return ModeAuto, fmt.Errorf("%w: %q: it must be one of %s", ErrMode, text, strings.Join(modeNames[:], ", "))
}

// String is the mode's name: auto, zero-copy, copy, generic or udp.
func (m Mode) String() string {
	if m.Known() {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Known reports whether it is one of the modes.
func (m Mode) Known() bool { return int(m) < len(modeNames) }
