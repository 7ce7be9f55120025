//go:build linux && !portable

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stillwater-rpc/stillwater/bpf"
)

func newXDP(c *cli) *cobra.Command {
	return newGroup("xdp", "Load, see and remove XDP programs",
		newXDPLoad(c), newXDPAttach(c), newXDPDetach(c), newXDPStatus(c), newXDPClean(c))
}

// interfaceIndex is the index of an interface that is there.
func interfaceIndex(name string) (int, error) {
	if err := checkInterface(name); err != nil {
		return 0, err
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return 0, fmt.Errorf("finding interface %s: %w", name, err)
	}
	return device.Index, nil
}

// errUnknownOwner says that we may not ask whose program it is.
var errUnknownOwner = errors.New("whose program that is cannot be seen without CAP_SYS_ADMIN")

// xdpError gives what was found in the way, and nothing has changed for, the code of a check that failed.
func xdpError(err error) error {
	if held, ok := errors.AsType[*bpf.HeldError](err); ok {
		if held.Name == "" && os.Geteuid() != 0 {
			return &codeError{exitPrivilege, fmt.Errorf("%w: %w", err, errUnknownOwner)}
		}
		return checkError(err)
	}
	if _, ok := errors.AsType[*bpf.ContractError](err); ok {
		return checkError(err)
	}
	for _, state := range []error{bpf.ErrNotBPFFS, bpf.ErrPinned, bpf.ErrNoPins, bpf.ErrAttached} {
		if errors.Is(err, state) {
			return checkError(err)
		}
	}
	return err
}

// pinFlag is where a program is pinned.
type pinFlag struct{ path string }

func (f *pinFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.path, "pin-path", "", "`folder` of the pins, on a BPF file system; empty = "+bpf.PinRoot+"/INTERFACE")
}

// of is the folder for an interface.
func (f *pinFlag) of(name string) string {
	if f.path != "" {
		return f.path
	}
	return bpf.PinPath(name)
}

// modeFlag is how to attach.
type modeFlag string

// String is the mode's name.
func (f *modeFlag) String() string {
	if *f == "" {
		return bpf.ModeNative.String()
	}
	return string(*f)
}

// Type names the value in help.
func (f *modeFlag) Type() string { return "mode" }

// Set reads a mode's name.
func (f *modeFlag) Set(text string) error {
	return setWord((*string)(f), text, bpf.ModeNative.String(), bpf.ModeGeneric.String())
}

func (f *modeFlag) mode() bpf.Mode {
	if f.String() == bpf.ModeGeneric.String() {
		return bpf.ModeGeneric
	}
	return bpf.ModeNative
}

const modeUsage = "where to run it: `mode` is native (in the driver) or generic (in the kernel's stack, slower, for any device)"

// parseServices reads addresses with ports.
func parseServices(texts []string) ([]netip.AddrPort, error) {
	services := make([]netip.AddrPort, len(texts))
	for i, text := range texts {
		service, err := netip.ParseAddrPort(text)
		if err != nil {
			return nil, usageError("--service %s: write the address of this interface and a port, like 10.0.0.1:%d", text, defaultPort)
		}
		services[i] = service
	}
	return services, nil
}

func serviceTexts(services []netip.AddrPort) []string {
	texts := make([]string, len(services))
	for i, service := range services {
		texts[i] = service.String()
	}
	return texts
}
