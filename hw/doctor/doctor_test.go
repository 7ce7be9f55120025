//go:build linux

package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

const mebibyte = 1 << 20

var testNeeds = Needs{MemoryBytes: func(queues int) int64 { return int64(queues) * 8 * mebibyte }, PacketSizeMax: 1784, QueuesMax: 64}

// host is a machine on which all is well.
func host() map[string]string {
	return map[string]string{
		fileRelease: "5.15.0-91-generic", fileBPF: "2", fileJIT: "1", fileProtocols: "protocol size\nXDP   1088\nUDP   1344",
		fileStatus: "Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t0\nCpus_allowed_list:\t2-5", fileUIDMap: "         0          0 4294967295",
		fileLimits: "Limit   Soft Limit   Hard Limit   Units\nMax locked memory   unlimited   unlimited   bytes", fileCgroup: "0::/a/b",
		directoryCgroup + "/a/b/cpu.max":                       "max 100000",
		fileHugePages:                                          "[always] madvise never",
		directoryClock + "/current_clocksource":                "tsc",
		"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "performance",
		"sys/devices/system/cpu/cpu2/cpuidle/state0/name":      "POLL",
		"sys/devices/system/cpu/cpu2/cpuidle/state0/latency":   "0",
	}
}

func to[T any](v T) *T { return &v }

// card is an interface with which all is well.
func card() *NIC {
	return &NIC{
		Interface: "eth1", Driver: "ice", Up: to(true), MTUBytes: 1500, QueueCount: 4, Features: []string{"basic", "redirect", "xsk-zerocopy"},
		Metadata: []string{"timestamp"}, Offloads: map[string]Offload{offloadLRO: {}, offloadGROHW: {}}, AdaptiveRx: to(false), HasRules: to(true),
		FlowHash: "sdfn", NUMANode: to(0), LocalCPUs: "0-7", ProgramKnown: true,
	}
}

func facts(files map[string]string, n *NIC) Facts {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return Facts{Root: root, NIC: n, Needs: testNeeds, Trial: Trial{Results: map[Step]error{StepLoad: nil, StepNative: nil, StepZeroCopy: nil}}}
}

// TestAllIsWell examines such a machine, and then one of which nothing can be read.
func TestAllIsWell(t *testing.T) {
	r := Examine(facts(host(), card()))
	for _, i := range r.Items {
		if i.Verdict != OK || i.Have == "" || i.Want+i.Why+i.Cure != "" {
			t.Errorf("%+v", i)
		}
	}
	if r.Path != NativeZeroCopy || !r.Proven || r.OKCount != len(r.Items) {
		t.Errorf("%+v", r)
	}
	r = Examine(Facts{Root: fstest.MapFS{}, NIC: &NIC{Interface: "eth1"}, Needs: testNeeds, Trial: Trial{Skipped: "of a reason", Cure: "# a cure"}})
	for _, i := range r.Items {
		if i.Verdict != Unknown {
			t.Errorf("nothing can be read, and yet %+v", i)
		}
	}
	if r.Path != SKB || r.Proven || r.UnknownCount != len(r.Items) {
		t.Errorf("%+v", r)
	}
}

// change is one thing that is otherwise on a machine, and what becomes of one check.
type change struct {
	file, text string // text "" takes the file away
	id         string
	want       Verdict
}

var hostChanges = []change{
	{fileRelease, "4.15.0-213-generic", "kernel.release", Fail},
	{fileRelease, "5.8.18", "kernel.release", Fail},
	{fileRelease, "5.9.0", "kernel.release", Warn},
	{fileRelease, "5.14.99", "kernel.release", Warn},
	{fileRelease, "6.1.0", "kernel.release", OK},
	{fileRelease, "mainline", "kernel.release", Unknown},
	{fileProtocols, "protocol size\nUDP 1", "kernel.af_xdp", Fail},
	{fileBPF, "", "bpf.syscall", Fail},
	{fileJIT, "0", "bpf.jit", Warn},
	{fileJIT, "", "bpf.jit", Unknown},
	{fileStatus, "Cpus_allowed_list:\t3", "cpu.count", Warn},
	{fileStatus, "Cpus_allowed_list:\t3,8", "cpu.count", OK},
	{fileStatus, "Cpus_allowed_list:\t3-", "cpu.count", Unknown},
	{fileStatus, "Cpus_allowed_list:\t8-15", "cpu.numa", Warn},
	{fileStatus, "Cpus_allowed_list:\t7-15", "cpu.numa", OK},
	{"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave", "cpu.governor", Warn},
	{"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "", "cpu.governor", Unknown},
	{"sys/devices/system/cpu/cpu2/cpuidle/state1/latency", "20", "cpu.idle", OK},
	{"sys/devices/system/cpu/cpu2/cpuidle/state1/latency", "21", "cpu.idle", Warn},
	{fileHugePages, "always [madvise] never", "memory.huge_pages", OK},
	{fileHugePages, "always madvise [never]", "memory.huge_pages", Warn},
	{fileHugePages, "always madvise never", "memory.huge_pages", Unknown},
	{fileStatus, "CapEff:\t0000000000002000", "privileges.net_admin", Fail},
	{fileStatus, "CapEff:\t0000000000001000", "privileges.net_admin", OK},
	{fileStatus, "CapEff:\t0000000000001000", "privileges.net_raw", Fail},
	{fileStatus, "CapEff:\t0000000000002000", "privileges.net_raw", OK},
	{fileStatus, "CapEff:\t0000008000000000", "privileges.bpf", OK},
	{fileStatus, "CapEff:\t0000000000200000", "privileges.bpf", OK},
	{fileStatus, "CapEff:\t0000007fffdfffff", "privileges.bpf", Fail},
	{fileStatus, "CapEff:\tall", "privileges.bpf", Unknown},
	{fileUIDMap, "         0       1000          1", "privileges.userns", Fail},
	{fileUIDMap, "", "privileges.userns", Unknown},
	{fileStatus, "Seccomp:\t2", "privileges.seccomp", OK}, // a trial has shown that it lets our program pass
	{directoryClock + "/current_clocksource", "hpet", "clock.source", Warn},
	{directoryClock + "/current_clocksource", "arch_sys_counter", "clock.source", OK},
	{directoryCgroup + "/a/b/cpu.max", "150000 100000", "cgroup.cpu_max", Warn},
	{directoryCgroup + "/a/cpu.max", "50000 100000", "cgroup.cpu_max", Warn},
	{directoryCgroup + "/cpu.max", "400000 100000", "cgroup.cpu_max", Warn},
	{directoryCgroup + "/c/cpu.max", "50000 100000", "cgroup.cpu_max", OK},
	{fileCgroup, "0::/../other", "cgroup.cpu_max", OK},
	{fileCgroup, "", "cgroup.cpu_max", Unknown},
}

func TestHost(t *testing.T) {
	for _, c := range hostChanges {
		files := host()
		if files[c.file] = c.text; c.text == "" {
			delete(files, c.file)
		}
		checkItem(t, fmt.Sprintf("%s: %q", c.file, c.text), facts(files, card()), c.id, c.want)
	}
}

// checkItem finds an item with a verdict and, unless it is ok, a reason to care and a cure that a shell understands.
func checkItem(t *testing.T, name string, f Facts, id string, want Verdict) Item {
	t.Helper()
	r := Examine(f)
	at := slices.IndexFunc(r.Items, func(i Item) bool { return i.ID == id })
	if at < 0 {
		t.Fatalf("%s: no item %s", name, id)
	}
	i := r.Items[at]
	if i.Verdict != want || i.Have == "" || !slices.Contains(Groups, i.Group) || !strings.HasPrefix(i.ID, i.Group+".") {
		t.Errorf("%s: %+v, want %s", name, i, want)
	}
	if (i.Verdict == OK) != (i.Cure == "") || (i.Verdict == OK) != (i.Why == "") {
		t.Errorf("%s: reason and cure %+v", name, i)
	}
	if out, err := exec.Command("sh", "-n", "-c", i.Cure).CombinedOutput(); err != nil {
		t.Errorf("%s: no shell understands %q: %s", name, i.Cure, out)
	}
	if fails := r.Path == Socket; fails != (r.FailCount > 0) || fails && (!r.Proven || i.Verdict == Fail && !strings.Contains(r.Reason, id)) {
		t.Errorf("%s: %d failed, and the verdict is %s, %s", name, r.FailCount, r.Path, r.Reason)
	}
	return i
}

// TestMemlock is about the limit, with and without the capability that lifts it, at the bound.
func TestMemlock(t *testing.T) {
	const withoutIPCLock = "CapEff:\t0000008000003000\nSeccomp:\t0\nCpus_allowed_list:\t2-5"
	for _, test := range []struct {
		limit  string
		status string
		uids   string
		queues int
		want   Verdict
	}{
		{"unlimited", withoutIPCLock, "", 64, OK},
		{fmt.Sprint(8*mebibyte - 1), withoutIPCLock, "", 1, Fail},
		{fmt.Sprint(8 * mebibyte), withoutIPCLock, "", 1, OK},
		{fmt.Sprint(32*mebibyte - 1), withoutIPCLock, "", 4, Warn},
		{fmt.Sprint(32 * mebibyte), withoutIPCLock, "", 4, OK},
		{fmt.Sprint(64 * 8 * mebibyte), withoutIPCLock, "", 65, OK}, // no more queues are served
		{"65536", "", "", 1, OK},
		{"65536", "", "0 1000 1", 1, Fail}, // the capability counts in the host's user namespace only
		{"much", withoutIPCLock, "", 1, Unknown},
	} {
		files, n := host(), card()
		files[fileLimits] = "Max locked memory   " + test.limit + "   " + test.limit + "   bytes"
		if test.status != "" {
			files[fileStatus] = test.status
		}
		if test.uids != "" {
			files[fileUIDMap] = test.uids
		}
		n.QueueCount = test.queues
		checkItem(t, test.limit, facts(files, n), "memory.memlock", test.want)
	}
}

// TestCgroupV1 finds the quota of the hierarchy that the cpu controller is in, and a cure for it.
func TestCgroupV1(t *testing.T) {
	files := host()
	files[fileCgroup] = "4:cpu,cpuacct:/docker/x\n3:cpuset:/docker/x\n0::/docker/x"
	files[directoryCgroup+"/cpu/docker/x/cpu.cfs_quota_us"] = "200000"
	files[directoryCgroup+"/cpu/docker/x/cpu.cfs_period_us"] = "100000"
	i := checkItem(t, "v1", facts(files, nil), "cgroup.cpu_max", Warn)
	if i.Have != "2.00 CPUs" || !strings.Contains(i.Cure, "echo -1 > /sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us") {
		t.Errorf("%+v", i)
	}
	files[directoryCgroup+"/cpu/docker/x/cpu.cfs_quota_us"] = "-1"
	checkItem(t, "v1 without a quota", facts(files, nil), "cgroup.cpu_max", OK)
}

// TestVirtual takes a machine under a hypervisor as it is.
func TestVirtual(t *testing.T) {
	files := host()
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.Contains(name, "/cpu2/") })
	files[fileHypervise] = "model name\t: X\nflags\t\t: fpu tsc hypervisor"
	for _, id := range []string{"cpu.governor", "cpu.idle"} {
		checkItem(t, "virtual", facts(files, nil), id, OK)
	}
}

// TestOldKernelRights takes CAP_SYS_ADMIN where CAP_BPF is unknown.
func TestOldKernelRights(t *testing.T) {
	files := host()
	files[fileRelease] = "5.7.0"
	files[fileStatus] = "CapEff:\t0000008000003000"
	checkItem(t, "5.7", facts(files, nil), "privileges.bpf", Fail)
	files[fileStatus] = "CapEff:\t0000000000203000"
	checkItem(t, "5.7", facts(files, nil), "privileges.bpf", OK)
}

// TestSeccompUntried warns of a filter, unless a trial has shown that it lets us pass.
func TestSeccompUntried(t *testing.T) {
	files := host()
	files[fileStatus] = "Seccomp:\t2\nCapEff:\t000001ffffffffff"
	f := facts(files, nil)
	f.Trial = Trial{Skipped: "so", Cure: "# so"}
	checkItem(t, "untried", f, "privileges.seccomp", Warn)
	f.Trial = Trial{Results: map[Step]error{StepLoad: fmt.Errorf("load: %w", fs.ErrPermission)}}
	checkItem(t, "refused", f, "bpf.load", Fail)
	checkItem(t, "refused", f, "privileges.seccomp", Warn)
}

func TestNIC(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*NIC)
		id     string
		want   Verdict
	}{
		"down":                 {func(n *NIC) { n.Up = to(false) }, "nic.link", Fail},
		"another's program":    {func(n *NIC) { n.Program = &Program{Text: "x", Cure: "# stop it"} }, "nic.program", Fail},
		"our program":          {func(n *NIC) { n.Program = &Program{Ours: true, Text: "x"} }, "nic.program", OK},
		"64 queues":            {func(n *NIC) { n.QueueCount = 64 }, "nic.queues", OK},
		"65 queues":            {func(n *NIC) { n.QueueCount = 65 }, "nic.queues", Warn},
		"MTU at the frame":     {func(n *NIC) { n.MTUBytes = 1766 }, "nic.mtu", OK},
		"MTU above the frame":  {func(n *NIC) { n.MTUBytes = 1767 }, "nic.mtu", Warn},
		"LRO":                  {func(n *NIC) { n.Offloads[offloadLRO] = Offload{On: true, Changeable: true} }, "nic.lro", Warn},
		"GRO in hardware":      {func(n *NIC) { n.Offloads[offloadGROHW] = Offload{On: true} }, "nic.gro_hw", Warn},
		"veth leaves sums out": {func(n *NIC) { n.Driver, n.Offloads[offloadTxChecksum] = "veth", Offload{true, true} }, "nic.tx_checksum", Warn},
		"veth writes sums":     {func(n *NIC) { n.Driver, n.Offloads[offloadTxChecksum] = "veth", Offload{false, true} }, "nic.tx_checksum", OK},
		"adaptive coalescing":  {func(n *NIC) { n.AdaptiveRx = to(true) }, "nic.coalescing", Warn},
		"coalescing":           {func(n *NIC) { n.RxUsecs = 8 }, "nic.coalescing", Warn},
		"no metadata":          {func(n *NIC) { n.Metadata = nil }, "nic.metadata", OK},
		"no rules":             {func(n *NIC) { n.HasRules = to(false) }, "steering.rules", Warn},
		"no rules, one queue":  {func(n *NIC) { n.HasRules, n.QueueCount = to(false), 1 }, "steering.rules", OK},
		"addresses are hashed": {func(n *NIC) { n.FlowHash = "sd" }, "steering.hash", Warn},
		"unknown driver":       {func(n *NIC) { n.Driver = "xyz" }, "nic.driver", OK},
		"one node":             {func(n *NIC) { n.NUMANode, n.LocalCPUs = to(-1), "" }, "cpu.numa", OK},
		"a far node":           {func(n *NIC) { n.NUMANode, n.LocalCPUs = to(1), "8-15" }, "cpu.numa", Warn},
	} {
		n := card()
		test.change(n)
		checkItem(t, name, facts(host(), n), test.id, test.want)
	}
}

// TestTrial goes through the ways in which a trial ends.
func TestTrial(t *testing.T) {
	no, broken := fmt.Errorf("attach: %w", syscall.EOPNOTSUPP), errors.New("broken")
	for name, test := range map[string]struct {
		results map[Step]error
		path    Path
		items   map[string]Verdict
	}{
		"zero-copy": {
			map[Step]error{StepLoad: nil, StepNative: nil, StepZeroCopy: nil},
			NativeZeroCopy, map[string]Verdict{"nic.native": OK, "nic.zero_copy": OK},
		},
		"copy": {
			map[Step]error{StepLoad: nil, StepNative: nil, StepZeroCopy: no, StepCopy: nil},
			NativeCopy, map[string]Verdict{"nic.native": OK, "nic.zero_copy": Warn},
		},
		"generic": {
			map[Step]error{StepLoad: nil, StepNative: no, StepGeneric: nil, StepCopy: nil},
			SKB, map[string]Verdict{"nic.native": Warn, "nic.generic": OK, "nic.zero_copy": Warn},
		},
		"generic, a busy queue": {
			map[Step]error{StepLoad: nil, StepNative: no, StepGeneric: nil, StepCopy: syscall.EBUSY},
			Socket, map[string]Verdict{"nic.generic": OK, "nic.zero_copy": Fail},
		},
		"neither mode": {
			map[Step]error{StepLoad: nil, StepNative: no, StepGeneric: broken},
			Socket, map[string]Verdict{"nic.native": Warn, "nic.generic": Fail, "nic.zero_copy": Unknown},
		},
		"MTU": {
			map[Step]error{StepLoad: nil, StepNative: syscall.ERANGE},
			Socket, map[string]Verdict{"nic.native": Fail, "nic.zero_copy": Unknown},
		},
		"queues of the peer": {map[Step]error{StepLoad: nil, StepNative: syscall.ENOSPC}, Socket, map[string]Verdict{"nic.native": Fail}},
		"a fault":            {map[Step]error{StepLoad: nil, StepNative: broken}, Socket, map[string]Verdict{"nic.native": Fail}},
		"a busy queue": {
			map[Step]error{StepLoad: nil, StepNative: nil, StepZeroCopy: syscall.EBUSY},
			Socket, map[string]Verdict{"nic.zero_copy": Fail},
		},
		"no copy either": {
			map[Step]error{StepLoad: nil, StepNative: nil, StepZeroCopy: no, StepCopy: broken},
			Socket, map[string]Verdict{"nic.zero_copy": Fail},
		},
		"no program": {
			map[Step]error{StepLoad: broken}, Socket,
			map[string]Verdict{"bpf.load": Fail, "nic.native": Unknown, "nic.zero_copy": Unknown},
		},
	} {
		f := facts(host(), card())
		f.Trial = Trial{Results: test.results}
		if r := Examine(f); r.Path != test.path || !r.Proven {
			t.Errorf("%s: %s, %s, want %s", name, r.Path, r.Reason, test.path)
		}
		for id, want := range test.items {
			checkItem(t, name, f, id, want)
		}
	}
}

// TestMemoryTrial: what the packets' memory was made of counts more than what the kernel was told.
func TestMemoryTrial(t *testing.T) {
	for memory, want := range map[string]Verdict{
		"": OK, "2 MiB pages": OK, "transparent huge pages, node 1": OK, "transparent huge pages for 6144 of 8192 KiB": OK,
		"4 KiB pages": Warn, "64 KiB pages, node 0": Warn,
	} {
		f := facts(host(), card())
		f.Trial.Memory = memory
		if i := checkItem(t, memory, f, "memory.huge_pages", want); !strings.Contains(i.Have, memory) {
			t.Errorf("%q: %s", memory, i.Have)
		}
	}
}

// TestExpected is the verdict without a trial: by the driver's word, else by what is known of it, at the kernel that changed it.
func TestExpected(t *testing.T) {
	for _, test := range []struct {
		driver, release string
		features        []string
		program         *Program
		want            Path
		proven          bool
	}{
		{"veth", "6.8.0", []string{featureBasic, featureZeroCopy}, nil, NativeZeroCopy, false}, // its word counts more
		{"ice", "6.8.0", []string{featureBasic}, nil, NativeCopy, false},
		{"ice", "6.8.0", []string{}, nil, SKB, false},
		{"igc", "5.14.0", nil, nil, NativeZeroCopy, false},
		{"igc", "5.13.9", nil, nil, NativeCopy, false},
		{"mlx5_core", "5.15.0", nil, nil, NativeZeroCopy, false},
		{"veth", "6.8.0", nil, nil, NativeCopy, false},
		{"xyz", "6.8.0", nil, nil, SKB, false},
		{"ice", "6.8.0", nil, &Program{Ours: true, Mode: "native", Text: "x"}, NativeZeroCopy, false},
		{"ice", "6.8.0", nil, &Program{Ours: true, Mode: "generic", Text: "x"}, SKB, true},
	} {
		files, n := host(), card()
		files[fileRelease] = test.release
		n.Driver, n.Features, n.Program = test.driver, test.features, test.program
		f := facts(files, n)
		f.Trial = Trial{Skipped: "so", Cure: "# so"}
		if r := Examine(f); r.Path != test.want || r.Proven != test.proven {
			t.Errorf("%+v: %s, %v, %s", test, r.Path, r.Proven, r.Reason)
		}
	}
	f := facts(host(), nil)
	f.Interfaces = []string{"eth1", "eth2"}
	if r := Examine(f); r.Path != NativeZeroCopy || r.Proven {
		t.Errorf("without an interface: %+v", r)
	}
	if i := checkItem(t, "no interface", f, "nic.interface", Unknown); !strings.Contains(i.Have, "eth1, eth2") || i.Cure != "stillwater doctor --interface eth1" {
		t.Errorf("%+v", i)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]version{"5.15.0-91-generic": {5, 15}, "6.1": {6, 1}, "4.20rc1": {4, 20}} {
		if got, ok := parseVersion(text); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "5", "5.", "x.y", ".5"} {
		if got, ok := parseVersion(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
	for text, want := range map[string][]int{"0": {0}, "0-2,8": {0, 1, 2, 8}, "65535": {65535}} {
		if got, ok := cpuList(text); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "a", "1-", "2-1", "65536", "0-99999999999"} {
		if got, ok := cpuList(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}
