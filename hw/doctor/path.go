//go:build linux

package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// The features of XDP that decide (Documentation/netlink/specs/netdev.yaml).
const (
	featureBasic    = "basic"
	featureZeroCopy = "xsk-zerocopy"
)

// path finds how packets will travel.
func (e *examination) path() (path Path, proven bool, reason string) {
	var failed []string
	for _, i := range e.items {
		if i.Verdict == Fail {
			failed = append(failed, i.ID)
		}
	}
	switch {
	case len(failed) > 0:
		return Socket, true, "failed: " + strings.Join(failed, ", ")
	case e.NIC == nil:
		return NativeZeroCopy, false, "no interface was named, and the host allows it"
	}
	if path, decided := e.tried(); decided {
		return path, true, "tried on " + e.NIC.Interface
	}
	if p := e.NIC.Program; p != nil && p.Ours {
		return e.running(p.Mode)
	}
	path, reason = e.expected()
	return path, false, reason
}

// tried is what the trial says. A socket that did not bind leaves it open whether it copies.
func (e *examination) tried() (path Path, decided bool) {
	went := func(step Step) bool {
		err, made := e.Trial.Results[step]
		return made && err == nil
	}
	switch {
	case went(StepNative) && went(StepZeroCopy):
		return NativeZeroCopy, true
	case went(StepNative) && went(StepCopy):
		return NativeCopy, true
	case went(StepGeneric) && went(StepCopy):
		return SKB, true
	}
	return "", false
}

// running is what a program of ours says that is at work there. It cannot be told from outside whether its sockets copy.
func (e *examination) running(mode string) (Path, bool, string) {
	if mode == "generic" {
		return SKB, true, "a Stillwater runs there, in generic mode"
	}
	path, reason := e.expected()
	return path, false, "a Stillwater runs there, in " + mode + " mode; " + reason
}

// expected is what the driver says of itself, or else what is known of it.
func (e *examination) expected() (Path, string) {
	n := e.NIC
	if n.Features != nil {
		switch {
		case slices.Contains(n.Features, featureZeroCopy):
			return NativeZeroCopy, "not tried: the driver says so"
		case slices.Contains(n.Features, featureBasic):
			return NativeCopy, "not tried: the driver says so"
		}
		return SKB, "not tried: the driver says that it has no native XDP"
	}
	kernel, ok := e.kernel()
	zeroCopy, known := hint(n.Driver, kernel)
	switch {
	case !ok || !known:
		return SKB, "not tried: nothing is known of the driver, and this every interface can"
	case zeroCopy:
		return NativeZeroCopy, fmt.Sprintf("not tried: %s is known for it from Linux %d.%d on", n.Driver, zeroCopySince[n.Driver].major, zeroCopySince[n.Driver].minor)
	}
	return NativeCopy, fmt.Sprintf("not tried: %s is not known for zero-copy on this kernel", n.Driver)
}
