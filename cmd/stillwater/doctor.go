//go:build linux && !portable

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/hw/doctor"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/xsk"
)

const schemaDoctor = "stillwater.doctor.v1"

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	name  string // of the interface
	root  string
	force bool
}

// doctorData is what doctor prints as JSON.
type doctorData struct {
	Interface string `json:"interface,omitempty"`
	Root      string `json:"root,omitempty"` // of a recorded tree
	doctor.Report
}

const doctorLong = `Say how this host will carry our packets, what stands in the way, and the cure for each: kernel, BPF, the NIC and its steering, CPUs, memory,
privileges, the clock, and the quota of the cgroup.

The verdict is native-zc (XDP in the driver, zero-copy), native-copy, skb (generic XDP) or socket (no AF_XDP: kernel UDP).

With --interface it is found by trial: our program is attached and detached again, and a socket is bound and closed again. That can bounce the
link, so the interface of the default route is tried with --force only, and one that has an XDP program is not tried at all. Without
root it says what it can see, and what it cannot.

With --root it examines a recorded tree of /proc and /sys instead, and tries nothing.

Exit code 3: a check failed, so there is no AF_XDP. 4: there are warnings, with --strict.`

func newDoctor(c *cli) *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Say how this host will carry packets, and the cure for what stands in the way",
		Long:    doctorLong,
		Example: "  stillwater doctor --interface eth1\n  stillwater doctor --root recorded/ --interface eth1 -o json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return f.run(c) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "interface", "", "examine this network `interface` too, by trial")
	flags.StringVar(&f.root, "root", "", "examine the recorded tree in this `directory`, which has proc and sys in it")
	flags.BoolVar(&f.force, "force", false, "try the interface of the default route too")
	return cmd
}

func (f *doctorFlags) run(c *cli) error {
	facts, err := f.facts()
	if err != nil {
		return err
	}
	report := doctor.Examine(facts)
	if f.root == "" {
		facts.Trial = f.try(facts.NIC, report)
		report = doctor.Examine(facts)
	}
	if err := f.print(c, report); err != nil {
		return err
	}
	c.warnings += report.WarnCount
	if report.FailCount > 0 {
		return checkError(fmt.Errorf("%d checks failed, so packets go over kernel UDP", report.FailCount))
	}
	return nil
}

func (f *doctorFlags) print(c *cli, report doctor.Report) error {
	if c.text() {
		return c.print(doctorText(f.name, report, c.colours()))
	}
	return c.printObject(schemaDoctor, doctorData{Interface: f.name, Root: f.root, Report: report})
}

// needs are what serve takes.
func needs() doctor.Needs {
	return doctor.Needs{
		MemoryBytes: xdpport.MemoryBytes, QueuesMax: xdpport.QueuesMax, PacketSizeMax: packetSizeMax(xsk.Config{}.WithDefaults()),
	}
}

// facts collects everything but the trial.
func (f *doctorFlags) facts() (doctor.Facts, error) {
	if f.force && (f.name == "" || f.root != "") {
		return doctor.Facts{}, usageError("--force is for a trial on an interface of this host: give --interface, and no --root")
	}
	facts := doctor.Facts{Needs: needs(), Root: os.DirFS("/")}
	if f.root != "" {
		return facts, f.recorded(&facts)
	}
	names, err := interfaceNames()
	if err != nil {
		return facts, err
	}
	facts.Interfaces = candidates(names)
	if f.name == "" {
		return facts, nil
	}
	if err := checkInterface(f.name); err != nil {
		return facts, err
	}
	facts.NIC, err = liveNIC(f.name, facts.Root)
	return facts, err
}

// recorded opens a tree. A link in it cannot lead out of it: a recorded tree would silently become this host's.
func (f *doctorFlags) recorded(facts *doctor.Facts) error {
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return usageError("--root %s: it must be a directory with proc and sys of a host in it: %w", f.root, err)
	}
	facts.Root = root.FS()
	for _, name := range []string{"proc", "sys"} {
		if _, err := fs.Stat(facts.Root, name); err != nil {
			return usageError("--root %s: it has no %s: copy the files of /proc and /sys there, see docs/cli.md", f.root, name)
		}
	}
	facts.Trial = doctor.Trial{Skipped: "a recorded tree cannot be tried", Cure: "stillwater doctor --interface " + orName(f.name) + " # on the host itself"}
	entries, err := fs.ReadDir(facts.Root, path.Join("sys", "class", "net"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usageError("--root %s: %w", f.root, err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	facts.Interfaces = candidates(names)
	if f.name == "" {
		return nil
	}
	if facts.NIC, err = recordedNIC(f.name, facts.Root); err != nil {
		return usageError("--root %s: no interface %s is recorded: there are %s", f.root, f.name, listText(facts.Interfaces))
	}
	return nil
}

// candidates are the interfaces that one would name.
func candidates(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "lo" })
}

func orName(name string) string {
	if name == "" {
		return "IFACE"
	}
	return name
}

// doctorText is what a person reads.
func doctorText(name string, r doctor.Report, colours bool) string {
	var text strings.Builder
	where, how := "", "expected"
	if name != "" {
		where = " on " + name
	}
	if r.Proven {
		how = "proven"
	}
	fmt.Fprintf(&text, "verdict: %s%s, %s (%s)\n", r.Path, where, how, r.Reason)
	group := ""
	for _, i := range r.Items {
		if i.Group != group {
			group = i.Group
			fmt.Fprintf(&text, "\n%s\n", group)
		}
		_, short, _ := strings.Cut(i.ID, ".")
		fmt.Fprintf(&text, "  %s  %-*s  %s\n", verdictText(i.Verdict, colours), firstColumnWidth, short, i.Have)
		for _, more := range [][2]string{{"want", i.Want}, {"why", i.Why}, {"cure", i.Cure}} {
			if more[1] != "" && i.Verdict != doctor.OK {
				fmt.Fprintf(&text, "           %-4s  %s\n", more[0], more[1])
			}
		}
	}
	fmt.Fprintf(&text, "\n%d ok, %d warnings, %d failed, %d unknown\n", r.OKCount, r.WarnCount, r.FailCount, r.UnknownCount)
	return text.String()
}

// verdictText is a word of a fixed width.
func verdictText(v doctor.Verdict, colours bool) string {
	word := fmt.Sprintf("%-7s", v)
	if !colours {
		return word
	}
	const green, yellow, red, plain = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
	return map[doctor.Verdict]string{doctor.OK: green, doctor.Warn: yellow, doctor.Fail: red}[v] + word + plain
}
