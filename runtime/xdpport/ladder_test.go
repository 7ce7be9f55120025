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

// TestClimb has drivers of every kind: what is bound and attached, one after the other, and where that ends.
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
		"auto, no zero-copy":                 {ModeAuto, no, nil, "copy auto", nil},
		"auto, no native":                    {ModeAuto, no, no, "copy auto", nil}, // package bpf goes on to generic
		"auto, zero-copy without native XDP": {ModeAuto, nil, no, "zero-copy native, copy auto", nil},
		"auto, a program in another mode":    {ModeAuto, nil, ErrMode, "zero-copy native, copy auto", nil},
		"auto, a fault of binding":           {ModeAuto, broken, nil, "", broken},
		"auto, a fault of attaching":         {ModeAuto, nil, broken, "zero-copy native", broken},
		"zero-copy":                          {ModeZeroCopy, nil, nil, "zero-copy native", nil},
		"zero-copy, none":                    {ModeZeroCopy, no, nil, "", unix.EOPNOTSUPP},
		"zero-copy, no native":               {ModeZeroCopy, nil, no, "zero-copy native", unix.EOPNOTSUPP},
		"copy":                               {ModeCopy, nil, nil, "copy native", nil},
		"copy, no native":                    {ModeCopy, nil, no, "copy native", unix.EOPNOTSUPP},
		"generic":                            {ModeGeneric, nil, no, "copy generic", nil},
	} {
		tried := ""
		err := c.mode.climb(func(sockets xsk.Mode) error {
			if sockets == xsk.ModeAuto && errors.Is(c.zeroCopy, unix.EOPNOTSUPP) {
				sockets = xsk.ModeCopy // as package xsk does
			} else if sockets != xsk.ModeCopy && c.zeroCopy != nil {
				return c.zeroCopy
			}
			if sockets == xsk.ModeAuto {
				sockets = xsk.ModeZeroCopy
			}
			if tried != "" {
				tried += ", "
			}
			program := c.mode.program(sockets)
			tried += sockets.String() + " " + program.String()
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

// TestZeroCopyIsNotForGeneric in any mode that it can be bound in.
func TestZeroCopyIsNotForGeneric(t *testing.T) {
	for _, m := range []Mode{ModeAuto, ModeZeroCopy, ModeCopy} {
		if got := m.program(xsk.ModeZeroCopy); got != bpf.ModeNative {
			t.Errorf("%v: %v program", m, got)
		}
	}
	for _, sockets := range ModeGeneric.sockets() {
		if sockets != xsk.ModeCopy {
			t.Errorf("generic binds in %v mode", sockets)
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
