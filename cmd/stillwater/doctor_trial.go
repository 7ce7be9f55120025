//go:build linux && !portable

package main

import (
	"errors"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/doctor"
	"github.com/stillwater-rpc/stillwater/hw/nic"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// try makes the trial as far as it may go. Where a check has failed already, nothing is tried.
func (f *doctorFlags) try(n *doctor.NIC, report doctor.Report) doctor.Trial {
	if report.FailCount > 0 {
		return doctor.Trial{Skipped: "another check has failed", Cure: "# the cure of what failed"}
	}
	var t doctor.Trial
	if n != nil {
		t.Skipped, t.Cure = f.spared(n)
	}
	if t.Skipped != "" {
		n = nil // the program can be loaded all the same
	}
	t.Results = tryHost(n)
	t.Memory = tryMemory(n)
	return t
}

// spared says why an interface is not tried: it has a program, whosever it is, or it carries the default route, since attaching bounces some links.
func (f *doctorFlags) spared(n *doctor.NIC) (why, cure string) {
	switch {
	case n.Program != nil || !n.ProgramKnown:
		return "an XDP program may be at work there", "stillwater xdp status " + f.name + " # once the program is gone, try again"
	case !f.force && carriesDefaultRoute(f.name):
		return "it carries the default route, and a trial can bounce the link", "stillwater doctor --interface " + f.name + " --force"
	}
	return "", ""
}

// carriesDefaultRoute is true also where that cannot be found out.
func carriesDefaultRoute(name string) bool {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return true
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
			return true
		}
		for _, route := range routes {
			if isDefault(&route) && leadsTo(&route, device.Index) {
				return true
			}
		}
	}
	return false
}

func isDefault(route *netlink.Route) bool {
	if route.Dst == nil {
		return true
	}
	ones, _ := route.Dst.Mask.Size()
	return ones == 0
}

func leadsTo(route *netlink.Route, index int) bool {
	return route.LinkIndex == index ||
		slices.ContainsFunc(route.MultiPath, func(hop *netlink.NexthopInfo) bool { return hop.LinkIndex == index })
}

// tryHost loads our program, and tries it on an interface if one is given. All is taken back: the program is detached and unloaded, and the sockets are
// closed. Whoever kills us has it taken back by the kernel.
func tryHost(n *doctor.NIC) map[doctor.Step]error {
	results := map[doctor.Step]error{}
	program, err := bpf.Load(bpf.Options{})
	results[doctor.StepLoad] = err
	if err != nil {
		return results
	}
	if n != nil {
		tryInterface(n.Interface, program, results)
	}
	if err := program.Close(); err != nil {
		results[doctor.StepLoad] = err
	}
	return results
}

// tryInterface goes the way of opening a port: what fails here fails there, and what that falls back to is tried here.
func tryInterface(name string, program *bpf.Program, results map[doctor.Step]error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		results[doctor.StepNative] = err
		return
	}
	_, err = program.Attach(device.Index, bpf.ModeNative)
	results[doctor.StepNative] = err
	if errors.Is(err, unix.EOPNOTSUPP) {
		if _, err = program.Attach(device.Index, bpf.ModeGeneric); err == nil {
			results[doctor.StepCopy] = tryBind(device.Index, xsk.ModeCopy) // zero-copy is not for generic mode
		}
		results[doctor.StepGeneric] = err
		return
	}
	if err != nil {
		return
	}
	err = tryBind(device.Index, xsk.ModeZeroCopy)
	results[doctor.StepZeroCopy] = err
	if errors.Is(err, unix.EOPNOTSUPP) {
		results[doctor.StepCopy] = tryBind(device.Index, xsk.ModeCopy)
	}
}

// tryMemory makes the memory that a port of one queue takes, and says what it was made of; "" if there was none to make it of.
func tryMemory(n *doctor.NIC) string {
	cfg := xsk.Config{}
	if n != nil {
		cfg.Node = xsk.NodeAt(nic.NUMANode(n.Interface))
	}
	umem, err := xsk.NewUMEM(cfg)
	if err != nil {
		return ""
	}
	text := umem.Memory()
	if umem.Close() != nil { // no queue is open on it, so nothing keeps it
		return ""
	}
	return text
}

// tryBind binds a socket with the memory that a port of one queue takes.
func tryBind(index int, mode xsk.Mode) error {
	queue, err := xsk.Open(xsk.Config{Interface: index, Mode: mode})
	if err != nil {
		return err
	}
	return queue.Close()
}
