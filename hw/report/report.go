package report

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// modulePath is looked up among the dependencies when the program is not one of this module's own.
const modulePath = "github.com/stillwater-rpc/stillwater"

// Machine is the machine and the program that a result comes from. A fact that could not be had is named in Unknown
// and is zero here: a result with an unknown fact is better than none.
type Machine struct {
	KernelRelease string `json:"kernel_release"`
	Arch          string `json:"arch"`
	CPUModel      string `json:"cpu_model"`
	// CPUsAllowed is the affinity of the process's first thread in the kernel's list notation, like "0-3,8".
	CPUsAllowed string `json:"cpus_allowed"`
	// CPUCount is how many CPUs Go saw at the start of the program.
	CPUCount   int  `json:"cpu_count"`
	Hypervisor bool `json:"hypervisor"`
	// ClockSource tells a cheap clock ("tsc") from one that is a system call or worse.
	ClockSource      string `json:"clock_source"`
	MemoryTotalBytes uint64 `json:"memory_total_bytes"`
	// MemoryAvailableBytes is what could be had without swapping (proc(5), MemAvailable), or what the control group allows (cgroup-v2, memory.max) if that is less.
	MemoryAvailableBytes uint64 `json:"memory_available_bytes"`
	// MemlockLimitBytes is the soft limit of this process; -1 is unlimited.
	MemlockLimitBytes int64 `json:"memlock_limit_bytes"`
	// BPFJITEnable is the sysctl net.core.bpf_jit_enable, which exists only in the host's own network namespace.
	BPFJITEnable string `json:"bpf_jit_enable"`

	GoVersion     string `json:"go_version"`
	ModuleVersion string `json:"module_version"`
	VCSRevision   string `json:"vcs_revision"`
	VCSModified   bool   `json:"vcs_modified"`
	GOMAXPROCS    int    `json:"gomaxprocs"`
	// GOGCPercent is -1 when the collector is off.
	GOGCPercent int64 `json:"gogc_percent"`
	// GOMEMLIMITBytes is math.MaxInt64 when there is no limit.
	GOMEMLIMITBytes int64 `json:"gomemlimit_bytes"`

	LoadAverage1m  float64 `json:"load_average_1m"`
	LoadAverage5m  float64 `json:"load_average_5m"`
	LoadAverage15m float64 `json:"load_average_15m"`

	// Unknown holds the JSON names of the facts that could not be had.
	Unknown []string `json:"unknown,omitempty"`
}

// Facts reads them all; without Linux it knows those of the program only. It does not change anything, needs no privilege, and takes a few hundred microseconds: it belongs
// before or after a run, never in it.
func Facts() Machine {
	m := Machine{Arch: runtime.GOARCH, CPUCount: runtime.NumCPU()}
	m.readHost(os.DirFS("/"))
	m.readLimits()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	m.readBuild(info)
	m.readGo()
	slices.Sort(m.Unknown)
	return m
}

// known notes a fact as unknown when it is empty.
func (m *Machine) known(name, value string) string {
	if value == "" {
		m.Unknown = append(m.Unknown, name)
	}
	return value
}

// readHost takes the root as a parameter so that tests can show it another machine.
func (m *Machine) readHost(root fs.FS) {
	line := func(path string) string {
		data, err := fs.ReadFile(root, path)
		if err != nil {
			return "" // the fact becomes unknown
		}
		return strings.TrimSpace(string(data))
	}
	m.KernelRelease = m.known("kernel_release", line("proc/sys/kernel/osrelease"))
	m.ClockSource = m.known("clock_source", line("sys/devices/system/clocksource/clocksource0/current_clocksource"))
	m.BPFJITEnable = m.known("bpf_jit_enable", line("proc/sys/net/core/bpf_jit_enable"))
	m.CPUsAllowed = m.known("cpus_allowed", field(line("proc/self/status"), "Cpus_allowed_list"))

	cpuinfo := line("proc/cpuinfo")
	m.CPUModel = m.known("cpu_model", field(cpuinfo, "model name"))
	// The CPU itself says on x86 that it is virtual; elsewhere the device tree does.
	flags := strings.Fields(field(cpuinfo, "flags"))
	_, deviceTreeErr := fs.Stat(root, "proc/device-tree/hypervisor")
	m.Hypervisor = slices.Contains(flags, "hypervisor") || deviceTreeErr == nil

	meminfo := line("proc/meminfo")
	m.MemoryTotalBytes = m.kilobytes("memory_total_bytes", field(meminfo, "MemTotal"))
	m.MemoryAvailableBytes = m.kilobytes("memory_available_bytes", field(meminfo, "MemAvailable"))
	if limit, err := strconv.ParseUint(line("sys/fs/cgroup/memory.max"), 10, 64); err == nil { // else it says max, or there is no group
		m.MemoryAvailableBytes = min(m.MemoryAvailableBytes, limit)
	}
	load := line("proc/loadavg")
	if _, err := fmt.Sscan(load, &m.LoadAverage1m, &m.LoadAverage5m, &m.LoadAverage15m); err != nil {
		m.Unknown = append(m.Unknown, "load_average_1m", "load_average_5m", "load_average_15m")
	}
}

// kilobytes reads a size of /proc/meminfo, like "2097152 kB"; 0 = unknown.
func (m *Machine) kilobytes(name, value string) uint64 {
	number, _, _ := strings.Cut(value, " ")
	size, err := strconv.ParseUint(m.known(name, number), 10, 54)
	if err != nil {
		return 0
	}
	return size << 10
}

// field returns the value of the first line "name : value" of a /proc file.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (m *Machine) readLimits() {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		m.Unknown = append(m.Unknown, "memlock_limit_bytes")
		return
	}
	m.MemlockLimitBytes = -1
	if limit.Cur < math.MaxInt64 { // RLIM_INFINITY is above, or there
		m.MemlockLimitBytes = int64(limit.Cur)
	}
}

func (m *Machine) readBuild(info *debug.BuildInfo) {
	m.GoVersion = runtime.Version()
	version := ""
	for _, module := range append(slices.Clone(info.Deps), &info.Main) {
		if module.Path == modulePath {
			version = module.Version
		}
	}
	m.ModuleVersion = m.known("module_version", version)
	settings := make(map[string]string, len(info.Settings))
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	m.VCSRevision = m.known("vcs_revision", settings["vcs.revision"]) // test binaries and source archives have none
	m.VCSModified = settings["vcs.modified"] == "true"
}

// readGo asks runtime/metrics: the setters of runtime/debug would have to change a value to tell it.
func (m *Machine) readGo() {
	m.GOMAXPROCS = runtime.GOMAXPROCS(0)
	samples := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(samples)
	for i, name := range []string{"gogc_percent", "gomemlimit_bytes"} {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			m.Unknown = append(m.Unknown, name)
			continue
		}
		value := int64(samples[i].Value.Uint64())
		if i == 0 {
			m.GOGCPercent = value
		} else {
			m.GOMEMLIMITBytes = value
		}
	}
}

// String is the one line that stands above a table of figures.
func (m Machine) String() string {
	or := func(value, absent string) string {
		if value == "" {
			return absent
		}
		return value
	}
	virtual, memlock, gogc := "bare metal", "unlimited", "off"
	if m.Hypervisor {
		virtual = "virtual"
	}
	if m.MemlockLimitBytes >= 0 {
		memlock = strconv.FormatInt(m.MemlockLimitBytes>>10, 10) + " KiB"
	}
	if m.GOGCPercent >= 0 {
		gogc = strconv.FormatInt(m.GOGCPercent, 10)
	}
	revision := or(m.VCSRevision, "unknown revision")
	if len(revision) > 12 && m.VCSRevision != "" {
		revision = revision[:12]
	}
	if m.VCSModified {
		revision += "+changes"
	}
	return fmt.Sprintf("%s %s %s, %s (%s), CPUs %s of %d, clock %s, %.1f GiB, memlock %s, bpf jit %s; "+
		"%s, stillwater %s (%s), GOMAXPROCS %d, GOGC %s; load %.2f %.2f %.2f",
		kernelName, or(m.KernelRelease, "unknown"), m.Arch, or(m.CPUModel, "unknown CPU"), virtual, or(m.CPUsAllowed, "unknown"),
		m.CPUCount, or(m.ClockSource, "unknown"), float64(m.MemoryTotalBytes)/(1<<30), memlock,
		or(m.BPFJITEnable, "unknown"), m.GoVersion, or(m.ModuleVersion, "unknown version"), revision, m.GOMAXPROCS, gogc,
		m.LoadAverage1m, m.LoadAverage5m, m.LoadAverage15m)
}
