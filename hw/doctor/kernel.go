//go:build linux

package doctor

import (
	"errors"
	"io/fs"
	"strings"
)

const (
	fileRelease   = "proc/sys/kernel/osrelease"
	fileProtocols = "proc/net/protocols"
	fileBPF       = "proc/sys/kernel/unprivileged_bpf_disabled"
	fileJIT       = "proc/sys/net/core/bpf_jit_enable"
)

var (
	// linkKernel is the first with a bpf_link for XDP, by which the program goes away with its process.
	linkKernel = version{5, 9}
	// testedKernel is the oldest that is tested.
	testedKernel = version{5, 15}
	// bpfKernel is the first with CAP_BPF.
	bpfKernel = version{5, 8}
)

// kernel returns the release, if it can be read.
func (e *examination) kernel() (version, bool) {
	release, _ := e.read(fileRelease)
	return parseVersion(release)
}

func kernelRelease(e *examination) []Item {
	s := subject{
		"kernel.release", "5.15 or later", "AF_XDP came with 4.18, and links that end with their process, which we attach by, with 5.9; from 5.15 on it is tested",
		"apt-get install linux-image-generic || apt-get install linux-image-amd64 # Ubuntu, Debian; elsewhere the newest of the distribution",
	}
	release, ok := e.read(fileRelease)
	v, parsed := parseVersion(release)
	switch {
	case !ok || !parsed:
		return s.missing(fileRelease)
	case v.before(linkKernel):
		return s.fail("%s", release)
	case v.before(testedKernel):
		return s.warn("%s", release)
	}
	return s.ok("%s", release)
}

// kernelAFXDP looks among the protocols that sockets can be opened of, which lists XDP if the kernel was built with it.
func kernelAFXDP(e *examination) []Item {
	s := subject{
		"kernel.af_xdp", "CONFIG_XDP_SOCKETS=y", "without AF_XDP sockets, packets go over kernel UDP",
		"grep CONFIG_XDP_SOCKETS /boot/config-$(uname -r) # and then a kernel that has it, as those of the distributions have",
	}
	text, ok := e.read(fileProtocols)
	if !ok {
		return s.missing(fileProtocols)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "XDP ") {
			return s.ok("built in")
		}
	}
	return s.fail("not among the protocols of this kernel")
}

func bpfSyscall(e *examination) []Item {
	s := subject{
		"bpf.syscall", "CONFIG_BPF_SYSCALL=y", "the program that steers packets to us cannot be loaded",
		"grep CONFIG_BPF_SYSCALL /boot/config-$(uname -r) # and then a kernel that has it, as those of the distributions have",
	}
	switch {
	case e.exists(fileBPF):
		return s.ok("built in")
	case !e.exists(fileRelease):
		return s.missing(fileBPF)
	}
	if v, ok := e.kernel(); ok && v.before(version{4, 4}) {
		return s.unknown("this kernel does not say", "grep CONFIG_BPF_SYSCALL= /boot/config-$(uname -r)")
	}
	return s.fail("/%s is not there", fileBPF)
}

func bpfJIT(e *examination) []Item {
	s := subject{
		"bpf.jit", "1", "the program is interpreted, which takes several times as long for each packet", "sysctl -w net.core.bpf_jit_enable=1",
	}
	switch value, ok := e.read(fileJIT); {
	case !ok:
		return s.unknown("only to be seen in the host's own network namespace", "nsenter --target 1 --net sysctl net.core.bpf_jit_enable")
	case value == "0":
		return s.warn("0")
	default:
		return s.ok("%s", value)
	}
}

// bpfLoad is what a trial says of the verifier and of the rights for it.
func bpfLoad(e *examination) []Item {
	s := subject{
		"bpf.load", "our program loads", "without the program no packet comes to us",
		"stillwater version; uname -r # report both, with this error",
	}
	err, tried := e.Trial.Results[StepLoad]
	switch {
	case !tried:
		return s.unknown("not tried: "+e.Trial.Skipped, e.Trial.Cure)
	case errors.Is(err, fs.ErrPermission):
		s.cure = setcap
		return s.fail("%v", err)
	case err != nil:
		return s.fail("%v", err)
	}
	return s.ok("our program was loaded")
}
