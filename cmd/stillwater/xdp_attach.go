//go:build linux && !portable

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bpf"
)

const schemaAttach = "stillwater.xdp_attach.v1"

// attachFlags are the flags of xdp attach.
type attachFlags struct {
	pin  pinFlag
	mode modeFlag
}

const xdpAttachLong = `Attach a program that is pinned but not attached: after xdp detach --keep, or when its interface was deleted and is there again.
Servers that share it keep their maps, so that what they registered is still there. Attached there already is no error.`

func newXDPAttach(c *cli) *cobra.Command {
	f := &attachFlags{}
	cmd := &cobra.Command{
		Use:     "attach INTERFACE",
		Short:   "Attach a program that is pinned already",
		Long:    xdpAttachLong,
		Example: "  stillwater xdp attach eth1",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return xdpError(f.run(c, args[0])) },
	}
	f.pin.register(cmd.Flags())
	cmd.Flags().Var(&f.mode, "mode", modeUsage)
	return cmd
}

func (f *attachFlags) run(c *cli, name string) (err error) {
	index, err := interfaceIndex(name)
	if err != nil {
		return err
	}
	dir := f.pin.of(name)
	pins, err := bpf.OpenPins(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pins.Close()) }()
	before, err := bpf.Inspect(name, dir)
	if err != nil {
		return err
	}
	mode, held := before.Mode, "as it was"
	if !before.Attached || before.ProgramID != pins.ProgramID {
		if mode, err = pins.Attach(index, f.mode.mode()); err != nil {
			return err
		}
		held = "by the pins in " + dir
	}
	services, err := pins.Program.Services()
	if err != nil {
		return err
	}
	data, err := attachmentOf(name, mode, services)
	if err != nil {
		return err
	}
	data.PinPath = dir
	if data.ProgramID != pins.ProgramID {
		return fmt.Errorf("%s has program %d, and %d is pinned in %s", name, data.ProgramID, pins.ProgramID, dir)
	}
	return c.printAttached(schemaAttach, data, held)
}
