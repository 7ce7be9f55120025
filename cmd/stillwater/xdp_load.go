//go:build linux && !portable

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bpf"
)

const schemaLoad = "stillwater.xdp_load.v1"

// loadFlags are the flags of xdp load.
type loadFlags struct {
	pin        pinFlag
	mode       modeFlag
	group      string
	foreground bool
	object     string
	services   []string
}

// attachedData is an attachment that was just made, as JSON.
type attachedData struct {
	Event     string   `json:"event"` // attached
	Interface string   `json:"interface"`
	Index     int      `json:"index"`
	ProgramID uint32   `json:"program_id"`
	Name      string   `json:"name"`
	Mode      string   `json:"mode"` // native or generic
	LinkID    uint32   `json:"link_id"`
	PinPath   string   `json:"pin_path,omitempty"` // absent: not pinned
	Services  []string `json:"services,omitempty"`
}

// detachedData ends what was held in the foreground.
type detachedData struct {
	Event     string            `json:"event"` // detached
	Interface string            `json:"interface"`
	Verdicts  map[string]uint64 `json:"verdict_counts,omitempty"`
}

const xdpLoadLong = `Load the steering program, attach it to an interface, and pin it with its maps, so that it outlives this command: servers
then share it by the flag --pin-path, each with queues of its own, and need CAP_NET_RAW alone. With --foreground it is held by this process until
SIGINT or SIGTERM, and goes with it however that ends; servers can share it if --pin-path is given too.

A program that is there already is never replaced: it is named, with its holder, and the exit code is 3. A program of your own, with --object, has to keep
the contract in bpf/CONTRACT.md, and is verified before it is attached.`

func newXDPLoad(c *cli) *cobra.Command {
	f := &loadFlags{}
	cmd := &cobra.Command{
		Use:   "load INTERFACE",
		Short: "Load the steering program, attach it, and pin it for servers to share",
		Long:  xdpLoadLong,
		Example: "  stillwater xdp load eth1 --group stillwater\n" +
			"  stillwater xdp load eth1 --foreground --service 10.0.0.1:7700",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return xdpError(f.run(c, args[0])) },
	}
	flags := cmd.Flags()
	f.pin.register(flags)
	flags.Var(&f.mode, "mode", modeUsage)
	flags.StringVar(&f.group, "group", "", "`group`, by name or number, whose servers may share the program; empty = root alone")
	flags.BoolVar(&f.foreground, "foreground", false, "hold the program until SIGINT or SIGTERM; pin it for servers to share only if --pin-path is given")
	flags.StringVar(&f.object, "object", "", "ELF `file` with a program of your own, in place of ours")
	flags.StringSliceVar(&f.services, "service", nil, "`address:port` whose UDP packets are ours from the start; servers add their own")
	return cmd
}

func (f *loadFlags) run(c *cli, name string) (err error) {
	services, err := parseServices(f.services)
	if err != nil {
		return err
	}
	pins := !f.foreground || f.pin.path != ""
	if f.group != "" && !pins {
		return usageError("--foreground without --pin-path pins nothing that --group could share: name a folder, or leave --group out")
	}
	index, err := interfaceIndex(name)
	if err != nil {
		return err
	}
	if pins {
		if err := checkVacant(f.pin.of(name), name); err != nil {
			return err
		}
	}
	group, err := groupID(f.group)
	if err != nil {
		return err
	}
	program, err := f.load()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	data, err := f.attach(program, name, index, services)
	if err != nil {
		return err
	}
	if pins {
		if err := f.pinInto(c, program, f.pin.of(name), group); err != nil {
			return err
		}
		data.PinPath = f.pin.of(name)
	}
	if f.foreground {
		return c.holdProgram(program, data)
	}
	return c.printAttached(schemaLoad, data, "pinned in "+data.PinPath)
}

// pinInto pins the program, without its attachment if that is held here, and warns where that is no use to the group.
func (f *loadFlags) pinInto(c *cli, program *bpf.Program, dir string, group int) error {
	pin := program.Pin
	if f.foreground {
		pin = program.PinMaps
	}
	if err := pin(dir, group); err != nil {
		return err
	}
	if blocked := blockedAt(dir, group); blocked != "" {
		c.warn("the group cannot get to the pins: run `chmod o+x "+blocked+"`", "group", f.group, "pin_path", dir)
	}
	return nil
}

// checkVacant refuses a folder that cannot be made, before anything is loaded.
func checkVacant(dir, name string) error {
	if err := bpf.CheckPinPath(dir); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s: %w: `stillwater xdp attach %s` attaches what is pinned there, `stillwater xdp detach %s` and `stillwater xdp clean` remove it",
			dir, bpf.ErrPinned, name, name)
	}
	return nil
}

func (f *loadFlags) load() (*bpf.Program, error) {
	if f.object != "" {
		return bpf.LoadObject(f.object, bpf.Options{})
	}
	return bpf.Load(bpf.Options{})
}

// attach registers the services first, so that the first packet is steered already.
func (f *loadFlags) attach(program *bpf.Program, name string, index int, services []netip.AddrPort) (attachedData, error) {
	for _, service := range services {
		if err := program.RegisterService(service.Addr(), service.Port()); err != nil {
			if errors.Is(err, bpf.ErrAddress) {
				err = usageError("--service %v: %w", service, err)
			}
			return attachedData{}, err
		}
	}
	mode, err := program.Attach(index, f.mode.mode())
	if err != nil {
		return attachedData{}, err
	}
	registered, err := program.Services()
	if err != nil {
		return attachedData{}, err
	}
	return attachmentOf(name, mode, registered)
}

// attachmentOf looks at what was just attached.
func attachmentOf(name string, mode bpf.Mode, services []netip.AddrPort) (attachedData, error) {
	status, err := bpf.Inspect(name)
	if err != nil {
		return attachedData{}, err
	}
	return attachedData{
		Event: "attached", Interface: name, Index: status.Index, ProgramID: status.ProgramID, Name: status.Name, Mode: mode.String(),
		LinkID: status.LinkID, Services: serviceTexts(services),
	}, nil
}

// printAttached says what was attached, and by what it stays so.
func (c *cli) printAttached(schema string, data attachedData, held string) error {
	if !c.text() {
		return c.printObject(schema, data)
	}
	return c.print(attachedText(data, held))
}

func attachedText(data attachedData, held string) string {
	text := fmt.Sprintf("%s: program %d (%s) attached in %s mode, %s\n", data.Interface, data.ProgramID, data.Name, data.Mode, held)
	if len(data.Services) > 0 {
		text += fmt.Sprintf("%s: services %s\n", data.Interface, strings.Join(data.Services, ", "))
	}
	return text
}

// holdProgram keeps an attached program until a signal, and its pins with it.
func (c *cli) holdProgram(program *bpf.Program, data attachedData) (err error) {
	if data.PinPath != "" {
		defer func() { err = errors.Join(err, bpf.RemovePins(data.PinPath)) }()
	}
	print := func(text string, line any) error { // lines for json too, as of every command that goes on
		if c.text() {
			return c.print(text)
		}
		return c.printLine(schemaLoad, line)
	}
	if err := print(attachedText(data, fmt.Sprintf("held by process %d until SIGINT or SIGTERM", os.Getpid())), data); err != nil {
		return err
	}
	<-c.ctx.Done()
	verdicts, err := program.Verdicts()
	if err != nil && !errors.Is(err, bpf.ErrNoCounters) {
		return err
	}
	if err := program.Detach(); err != nil {
		return err
	}
	return print(data.Interface+": detached\n"+verdictsText(verdicts, "  "),
		detachedData{Event: "detached", Interface: data.Interface, Verdicts: verdictCounts(verdicts)})
}
