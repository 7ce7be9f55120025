package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bpf"
)

const schemaDetach = "stillwater.xdp_detach.v1"

// detachData is what xdp detach prints as JSON.
type detachData struct {
	Interface string `json:"interface"`
	Detached  bool   `json:"detached"` // false: nothing was attached
}

const xdpDetachLong = `Detach a program of ours that was left behind by its process. Nothing attached is no error.

The programs of a running Stillwater go with their process, so it is enough to stop that. A program that is not ours, or that
somebody holds by a bpf_link, is refused with the holder's name and exit code 3.`

func newXDPDetach(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "detach INTERFACE",
		Short:   "Detach a program of ours that its process left behind",
		Long:    xdpDetachLong,
		Example: "  stillwater xdp detach eth1",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return detach(c, args[0]) },
	}
}

func detach(c *cli, name string) error {
	if err := checkInterface(name); err != nil {
		return err
	}
	err := bpf.Detach(name)
	nothing := errors.Is(err, bpf.ErrNotAttached)
	if held, ok := errors.AsType[*bpf.HeldError](err); ok {
		if held.Name == "" && os.Geteuid() != 0 {
			return &codeError{exitPrivilege, fmt.Errorf("%w: %w", err, errUnknownOwner)}
		}
		return checkError(err)
	}
	if err != nil && !nothing {
		return err
	}
	if !c.text() {
		return c.printObject(schemaDetach, detachData{Interface: name, Detached: !nothing})
	}
	if nothing {
		return c.print(name + ": no program was attached\n")
	}
	return c.print(name + ": detached\n")
}
