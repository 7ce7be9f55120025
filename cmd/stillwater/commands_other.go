//go:build !linux || portable

package main

import (
	"errors"

	"github.com/spf13/cobra"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// These have to do with AF_XDP, BPF, namespaces or a NIC from end to end.
func newDemo(*cli) *cobra.Command   { return needsLinux("demo") }
func newXDP(*cli) *cobra.Command    { return needsLinux("xdp") }
func newNIC(*cli) *cobra.Command    { return needsLinux("nic") }
func newDoctor(*cli) *cobra.Command { return needsLinux("doctor") }

// newLab is of the demo.
func newLab(*cli) *cobra.Command {
	cmd := needsLinux("lab")
	cmd.Hidden = true
	return cmd
}

// needsLinux is in the place of a command, so that its name is not taken for a slip of the pen.
func needsLinux(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "Needs a build for Linux", Args: cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(*cobra.Command, []string) error {
			return usageError("%s needs a build for Linux: this one has serve, call and bench over kernel UDP, sim, and version", name)
		},
	}
}

// dropPrivileges fails: without Linux there are no capabilities.
func dropPrivileges() error {
	return usageError("--drop-privileges needs a build for Linux: run this one as a user who has none")
}

// implementation says whose AF_XDP sockets an endpoint uses; without AF_XDP it can only be left alone.
type implementation struct{ sockets **sw.Sockets }

// String is the default.
func (implementation) String() string { return "own" }

// Type names the value in help.
func (implementation) Type() string { return "implementation" }

// Set takes the default.
func (implementation) Set(text string) error {
	if text != "own" {
		return errors.New("there are no AF_XDP sockets without Linux")
	}
	return nil
}
