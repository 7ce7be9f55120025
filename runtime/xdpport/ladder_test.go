//go:build linux

package xdpport

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// TestClimb has drivers of every kind: which way of binding is tried after which, how the program is attached for it, and where that ends.
func TestClimb(t *testing.T) {
	no := fmt.Errorf("bind: %w", unix.EOPNOTSUPP)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		mode             Mode
		zeroCopy, native error // of binding, of attaching
		want             string
		err              error
	}{
		"auto, all works":                    {ModeAuto, nil, nil, "zero-copy native", nil},
		"auto, no zero-copy":                 {ModeAuto, no, nil, "zero-copy native, copy native", nil},
		"auto, no native":                    {ModeAuto, no, no, "zero-copy native, copy native", nil}, // bpf goes on to generic
		"auto, zero-copy without native XDP": {ModeAuto, nil, no, "zero-copy native, copy native", nil},
		"auto, a program in another mode":    {ModeAuto, nil, ErrMode, "zero-copy native, copy native", nil},
		"auto, a fault":                      {ModeAuto, broken, nil, "zero-copy native", broken},
		"zero-copy":                          {ModeZeroCopy, nil, nil, "zero-copy native", nil},
		"zero-copy, none":                    {ModeZeroCopy, no, nil, "zero-copy native", unix.EOPNOTSUPP},
		"copy":                               {ModeCopy, nil, nil, "copy native", nil},
		"copy, no native":                    {ModeCopy, nil, no, "copy native", unix.EOPNOTSUPP},
		"generic":                            {ModeGeneric, nil, no, "copy generic", nil},
	} {
		tried := ""
		err := c.mode.climb(func(sockets xsk.Mode) error {
			program := c.mode.program(sockets)
			if tried != "" {
				tried += ", "
			}
			first := program
			if program == bpf.ModeAuto {
				first = bpf.ModeNative
			}
			tried += sockets.String() + " " + first.String()
			if sockets == xsk.ModeZeroCopy && c.zeroCopy != nil {
				return c.zeroCopy
			}
			if program == bpf.ModeNative {
				return c.native
			}
			return nil
		})
		if tried != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: tried %s, then %v", name, tried, err)
		}
	}
}

// TestZeroCopyIsNotForGeneric in any mode.
func TestZeroCopyIsNotForGeneric(t *testing.T) {
	for m := ModeAuto; m < ModeUDP; m++ {
		for _, sockets := range m.sockets() {
			if sockets == xsk.ModeZeroCopy && m.program(sockets) != bpf.ModeNative {
				t.Errorf("%v: %v program", m, m.program(sockets))
			}
		}
	}
}

func TestReason(t *testing.T) {
	for _, c := range []struct {
		mode    Mode
		xdp     bpf.Mode
		sockets xsk.Mode
		want    string
	}{
		{ModeAuto, bpf.ModeNative, xsk.ModeZeroCopy, ""},
		{ModeAuto, bpf.ModeNative, xsk.ModeCopy, " (no zero-copy there)"},
		{ModeAuto, bpf.ModeGeneric, xsk.ModeCopy, " (no native XDP there)"},
		{ModeCopy, bpf.ModeNative, xsk.ModeCopy, ""},
		{ModeGeneric, bpf.ModeGeneric, xsk.ModeCopy, ""},
	} {
		if got := c.mode.reason(c.xdp, c.sockets); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestModeNames(t *testing.T) {
	for m := ModeAuto; m.Known(); m++ {
		if got, err := ParseMode(m.String()); got != m || err != nil {
			t.Errorf("%v is read as %v, %v", m, got, err)
		}
	}
	if (ModeUDP + 1).Known() || (ModeUDP+1).String() != "mode 5" {
		t.Errorf("the last mode is followed by %v", ModeUDP+1)
	}
	for _, text := range []string{"", "native", "Auto", "mode 5"} {
		if m, err := ParseMode(text); !errors.Is(err, ErrMode) {
			t.Errorf("%q is %v", text, m)
		}
	}
}
