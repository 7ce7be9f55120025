//go:build linux

package doctor

import (
	"strconv"
	"strings"
)

// Capabilities, include/uapi/linux/capability.h.
const (
	capNetAdmin = 12
	capNetRaw   = 13
	capIPCLock  = 14
	capSysAdmin = 21
	capBPF      = 39
)

// setcap gives the program what it takes, for whoever runs it.
const setcap = `setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep "$(command -v stillwater)"`

// capability reports whether one is in effect.
func (e *examination) capability(number uint) (held, known bool) {
	text, found := e.statusField("CapEff")
	mask, err := strconv.ParseUint(text, 16, 64)
	return mask&(1<<number) != 0, found && err == nil
}

// initialUserNamespace reports whether capabilities are worth something to the host: the initial namespace maps all users to themselves.
func (e *examination) initialUserNamespace() bool {
	text, ok := e.read(fileUIDMap)
	return ok && strings.Join(strings.Fields(text), " ") == "0 0 4294967295"
}

func (e *examination) privilege(s subject, numbers ...uint) []Item {
	for _, number := range numbers {
		held, known := e.capability(number)
		if !known {
			return s.missing(fileStatus)
		}
		if held {
			return s.ok("held")
		}
	}
	return s.fail("not held")
}

func privilegeNetAdmin(e *examination) []Item {
	return e.privilege(subject{
		"privileges.net_admin", "CAP_NET_ADMIN", "a program cannot be attached", setcap + " # or run as root; or docker run --cap-add NET_ADMIN",
	}, capNetAdmin)
}

func privilegeNetRaw(e *examination) []Item {
	return e.privilege(subject{
		"privileges.net_raw", "CAP_NET_RAW", "an AF_XDP socket cannot be opened", setcap + " # or run as root; or docker run --cap-add NET_RAW",
	}, capNetRaw)
}

// privilegeBPF is CAP_SYS_ADMIN on kernels that know no CAP_BPF, and is covered by it on all.
func privilegeBPF(e *examination) []Item {
	s := subject{"privileges.bpf", "CAP_BPF", "a program cannot be loaded", setcap + " # or run as root; or docker run --cap-add BPF"}
	if v, ok := e.kernel(); ok && v.before(bpfKernel) {
		s.want, s.cure = "CAP_SYS_ADMIN", "sudo stillwater doctor # this kernel has no CAP_BPF"
		return e.privilege(s, capSysAdmin)
	}
	return e.privilege(s, capBPF, capSysAdmin)
}

func privilegeUserNamespace(e *examination) []Item {
	s := subject{
		"privileges.userns", "the host's user namespace", "capabilities of another one do not count for loading a program",
		"# run it outside; or docker run --userns host; or podman as root",
	}
	switch {
	case !e.exists(fileUIDMap):
		return s.missing(fileUIDMap)
	case !e.initialUserNamespace():
		return s.fail("another one")
	}
	return s.ok("the host's")
}

// privilegeSeccomp is a suspicion only: what a filter lets pass cannot be seen. A trial dispels it.
func privilegeSeccomp(e *examination) []Item {
	s := subject{
		"privileges.seccomp", "no filter", "a filter, as containers have, may refuse bpf(2) and AF_XDP sockets",
		"# docker run --cap-add BPF, to which Docker's own filter allows bpf(2); or --security-opt seccomp=unconfined",
	}
	mode, ok := e.statusField("Seccomp")
	switch {
	case !ok:
		return s.missing(fileStatus)
	case mode == "0":
		return s.ok("no filter")
	case e.verdict("bpf.load") == OK:
		return s.ok("a filter, which let our program pass")
	}
	return s.warn("a filter")
}
