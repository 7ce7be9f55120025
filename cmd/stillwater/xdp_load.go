package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

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
	PinPath   string   `json:"pin_path,omitempty"` // absent: held by this process
	Services  []string `json:"services,omitempty"`
}

// detachedData ends what was held in the foreground.
type detachedData struct {
	Event     string            `json:"event"` // detached
	Interface string            `json:"interface"`
	Verdicts  map[string]uint64 `json:"verdict_counts,omitempty"`
}

const xdpLoadLong = `Load the steering program, attach it to an interface, and pin it with its maps, so that it outlives this command: servers
then share it by the flag --pin-path, each with queues of its own, and need CAP_NET_RAW alone. With --foreground it is not pinned, but held until
SIGINT or SIGTERM.

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
	flags.BoolVar(&f.foreground, "foreground", false, "pin nothing: hold the program until SIGINT or SIGTERM")
	flags.StringVar(&f.object, "object", "", "ELF `file` with a program of your own, in place of ours")
	flags.StringSliceVar(&f.services, "service", nil, "`address:port` whose UDP packets are ours from the start; servers add their own")
	return cmd
}

func (f *loadFlags) run(c *cli, name string) (err error) {
	services, err := parseServices(f.services)
	if err != nil {
		return err
	}
	if f.foreground && (f.pin.path != "" || f.group != "") {
		return usageError("--foreground pins nothing: leave --pin-path and --group out")
	}
	index, err := interfaceIndex(name)
	if err != nil {
		return err
	}
	if !f.foreground {
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
	if f.foreground {
		return c.holdProgram(program, data)
	}
	data.PinPath = f.pin.of(name)
	if err := program.Pin(data.PinPath, group); err != nil {
		return err
	}
	if blocked := blockedAt(data.PinPath, group); blocked != "" {
		c.warn("the group cannot get to the pins: run `chmod o+x "+blocked+"`", "group", f.group, "pin_path", data.PinPath)
	}
	return c.printAttached(schemaLoad, data, "pinned in "+data.PinPath)
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
		if data.PinPath == "" {
			return c.printLine(schema, data) // another line follows
		}
		return c.printObject(schema, data)
	}
	text := fmt.Sprintf("%s: program %d (%s) attached in %s mode, %s\n", data.Interface, data.ProgramID, data.Name, data.Mode, held)
	if len(data.Services) > 0 {
		text += fmt.Sprintf("%s: services %s\n", data.Interface, strings.Join(data.Services, ", "))
	}
	return c.print(text)
}

// holdProgram keeps an attached program until a signal.
func (c *cli) holdProgram(program *bpf.Program, data attachedData) error {
	if err := c.printAttached(schemaLoad, data, fmt.Sprintf("held by process %d until SIGINT or SIGTERM", os.Getpid())); err != nil {
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
	if c.text() {
		return c.print(data.Interface + ": detached\n" + verdictsText(verdicts, "  "))
	}
	return c.printLine(schemaLoad, detachedData{Event: "detached", Interface: data.Interface, Verdicts: verdictCounts(verdicts)})
}

// groupID is the number of a group; of none it is root's.
func groupID(name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	if id, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(id), nil
	}
	group, err := user.LookupGroup(name)
	if err != nil {
		return 0, usageError("--group %s: there is no such group; give the name or the number of one", name)
	}
	return strconv.Atoi(group.Gid)
}

// blockedAt finds the first folder above the pins that a group has no way through. A BPF file system that systemd mounts is one.
func blockedAt(dir string, group int) string {
	if group == 0 {
		return ""
	}
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		about, err := os.Stat(above)
		if err != nil {
			return "" // whoever may not look need not be told
		}
		mode := about.Mode().Perm()
		owned := about.Sys().(*syscall.Stat_t).Gid == uint32(group) && mode&0o010 != 0
		if mode&0o001 == 0 && !owned {
			return above
		}
		if above == filepath.Dir(above) {
			return ""
		}
	}
}
