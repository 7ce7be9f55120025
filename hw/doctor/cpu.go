//go:build linux

package doctor

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

const (
	fileGovernor  = "sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor"
	directoryIdle = "sys/devices/system/cpu/cpu%d/cpuidle"
	fileHypervise = "proc/cpuinfo"

	// exitLatencyMax is how long a CPU may take to wake: the p99.9 of a loop that never sleeps is about as long (a timer tick).
	exitLatencyMax = 20
)

// allowed are the CPUs that we may run on; nil = unknown.
func (e *examination) allowed() []int {
	text, _ := e.statusField("Cpus_allowed_list")
	cpus, _ := cpuList(text)
	return cpus
}

// firstCPU is the CPU that is looked at for all: settings of power are made for all alike, as a rule.
func (e *examination) firstCPU() int {
	if cpus := e.allowed(); len(cpus) > 0 {
		return cpus[0]
	}
	return 0
}

func cpuCount(e *examination) []Item {
	s := subject{
		"cpu.count", "at least 2", "a poller that shares its CPU with its own clients waits for them",
		"taskset --cpu-list --pid 0-1 $$ # or docker run --cpuset-cpus 0-1",
	}
	text, _ := e.statusField("Cpus_allowed_list")
	switch cpus := e.allowed(); {
	case cpus == nil:
		return s.missing(fileStatus)
	case len(cpus) < 2:
		return s.warn("1: %s", text)
	default:
		return s.ok("%d: %s", len(cpus), text)
	}
}

// virtual reports whether a hypervisor runs us, which keeps power states to itself.
func (e *examination) virtual() bool {
	text, _ := e.read(fileHypervise)
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "flags" {
			return slices.Contains(strings.Fields(value), "hypervisor")
		}
	}
	return false
}

func cpuGovernor(e *examination) []Item {
	s := subject{
		"cpu.governor", "performance", "a CPU that changes its frequency by the load is slow when a burst begins", "cpupower frequency-set --governor performance",
	}
	file := fmt.Sprintf(fileGovernor, e.firstCPU())
	switch governor, ok := e.read(file); {
	case !ok && e.virtual():
		return s.ok("the hypervisor's")
	case !ok:
		return s.missing(file)
	case governor != "performance":
		return s.warn("%s", governor)
	default:
		return s.ok("%s", governor)
	}
}

// cpuIdle looks for the idle state that takes longest to leave, of those that are not disabled.
func cpuIdle(e *examination) []Item {
	s := subject{
		"cpu.idle", fmt.Sprintf("at most %d us to wake", exitLatencyMax), "a CPU that sleeps deeply takes that long to take the first packet after a pause",
		fmt.Sprintf("cpupower idle-set --disable-by-latency %d", exitLatencyMax+1),
	}
	directory := fmt.Sprintf(directoryIdle, e.firstCPU())
	states, err := fs.ReadDir(e.tree, directory)
	if err != nil && e.virtual() {
		return s.ok("the hypervisor's")
	}
	if err != nil {
		return s.missing(directory)
	}
	deepest, name := -1, "none"
	for _, state := range states {
		text, _ := e.read(directory + "/" + state.Name() + "/latency")
		disabled, _ := e.read(directory + "/" + state.Name() + "/disable")
		if latency, err := strconv.Atoi(text); err == nil && disabled != "1" && latency > deepest {
			deepest = latency
			name, _ = e.read(directory + "/" + state.Name() + "/name")
		}
	}
	switch {
	case deepest < 0:
		return s.ok("no idle state")
	case deepest > exitLatencyMax:
		return s.warn("%s, %d us", name, deepest)
	}
	return s.ok("%s, %d us", name, deepest)
}

// cpuNUMA looks whether we may run near the NIC.
var cpuNUMA = onNIC(func(e *examination, n *NIC) []Item {
	s := subject{
		"cpu.numa", "CPUs near the NIC", "each packet crosses from one NUMA node to another, with its descriptors",
		"stillwater serve --interface " + n.Interface + " --cpu " + n.LocalCPUs,
	}
	local, ok := cpuList(n.LocalCPUs)
	switch {
	case n.NUMANode != nil && *n.NUMANode < 0:
		return s.ok("one node, or the NIC does not say")
	case n.Driver == "veth":
		return s.ok("veth has no node")
	case n.NUMANode == nil || !ok:
		return s.unknown("the node of the NIC cannot be read", "cat /sys/class/net/"+n.Interface+"/device/numa_node")
	}
	near := 0
	for _, cpu := range e.allowed() {
		if slices.Contains(local, cpu) {
			near++
		}
	}
	switch have := fmt.Sprintf("%d of our CPUs on node %d, CPUs %s", near, *n.NUMANode, n.LocalCPUs); {
	case e.allowed() == nil:
		return s.missing(fileStatus)
	case near == 0:
		return s.warn("%s", have)
	default:
		return s.ok("%s", have)
	}
})
