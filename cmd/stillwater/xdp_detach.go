//go:build linux && !portable

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bpf"
)

const schemaDetach = "stillwater.xdp_detach.v1"

// detachData is what xdp detach prints as JSON.
type detachData struct {
	Interface string `json:"interface"`
	Detached  bool   `json:"detached"`           // false: nothing was attached
	PinPath   string `json:"pin_path,omitempty"` // what was pinned there
	Kept      bool   `json:"pins_kept"`          // the pins are still there
}

// detachFlags are the flags of xdp detach.
type detachFlags struct {
	pin  pinFlag
	keep bool
}

const xdpDetachLong = `Detach a program that xdp load pinned, and remove its pins; or one of ours that was left behind by its process. Nothing attached is no error.

The program of a running Stillwater without pins goes with its process, so it is enough to stop that. A program that is not ours, or that
somebody else holds by a bpf_link, is refused with the holder's name and exit code 3.`

func newXDPDetach(c *cli) *cobra.Command {
	f := &detachFlags{}
	cmd := &cobra.Command{
		Use:     "detach INTERFACE",
		Short:   "Detach a program of ours that is pinned, or that its process left behind",
		Long:    xdpDetachLong,
		Example: "  stillwater xdp detach eth1",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return xdpError(f.run(c, args[0])) },
	}
	f.pin.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.keep, "keep", false, "keep program and maps pinned, for xdp attach")
	return cmd
}

func (f *detachFlags) run(c *cli, name string) error {
	if err := checkInterface(name); err != nil {
		return err
	}
	dir := f.pin.of(name)
	pins, err := bpf.OpenPins(dir)
	switch {
	case err == nil:
		return errors.Join(f.detachPinned(c, name, pins), pins.Close())
	case f.pin.path != "" || !errors.Is(err, bpf.ErrNoPins) && !errors.Is(err, bpf.ErrNotBPFFS):
		return err
	}
	err = bpf.Detach(name)
	nothing := errors.Is(err, bpf.ErrNotAttached)
	if err != nil && !nothing {
		return err
	}
	return c.printDetached(detachData{Interface: name, Detached: !nothing})
}

// detachPinned takes down what is pinned, if it is of this interface.
func (f *detachFlags) detachPinned(c *cli, name string, pins *bpf.Pins) error {
	status, err := bpf.Inspect(name, pins.Dir)
	if err != nil {
		return err
	}
	live := pins.Link == bpf.AttachmentLive
	switch {
	case live && status.ProgramID != pins.ProgramID:
		return checkError(fmt.Errorf("program %d, which is pinned in %s, is attached to another interface, of index %d: nothing was changed",
			pins.ProgramID, pins.Dir, pins.Ifindex))
	case !live && status.Attached && status.ProgramID == pins.ProgramID:
		return status.Held() // xdp load --foreground, with pins
	case !live && status.Attached:
		c.warn("another program is attached, and stays", "interface", name, "program_id", status.ProgramID, "name", status.Name)
	}
	owners, err := pins.Program.Owners()
	if err != nil {
		return err
	}
	for _, owner := range owners {
		if live && owner.Alive() {
			c.warn("a server goes on without the program, through the kernel", "queue", owner.Queue, "pid", owner.PID, "command", owner.Command)
		}
	}
	if f.keep {
		err = pins.Detach()
	} else {
		err = pins.Remove()
	}
	if err != nil && !errors.Is(err, bpf.ErrNotAttached) {
		return err
	}
	return c.printDetached(detachData{Interface: name, Detached: live, PinPath: pins.Dir, Kept: f.keep})
}

func (c *cli) printDetached(d detachData) error {
	if !c.text() {
		return c.printObject(schemaDetach, d)
	}
	text := d.Interface + ": no program was attached"
	if d.Detached {
		text = d.Interface + ": detached"
	}
	switch {
	case d.Kept:
		text += ", the pins in " + d.PinPath + " are kept"
	case d.PinPath != "":
		text += ", the pins in " + d.PinPath + " are removed"
	}
	return c.print(text + "\n")
}
