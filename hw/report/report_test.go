//go:build linux

package report

import (
	"encoding/json"
	"maps"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// recorded is a small virtual machine.
var recorded = fstest.MapFS{
	"proc/sys/kernel/osrelease":                                       {Data: []byte("6.18.0-test\n")},
	"proc/sys/net/core/bpf_jit_enable":                                {Data: []byte("1\n")},
	"sys/devices/system/clocksource/clocksource0/current_clocksource": {Data: []byte("tsc\n")},
	"proc/self/status":                                                {Data: []byte("Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n")},
	"proc/cpuinfo": {Data: []byte("processor\t: 0\nmodel name\t: Test CPU @ 3 GHz: fast\n" +
		"flags\t\t: fpu hypervisor\n\nprocessor\t: 1\nmodel name\t: Another\n")},
	"proc/meminfo": {Data: []byte("MemTotal:        2097152 kB\nMemFree: 1 kB\nMemAvailable:    1048576 kB\n")},
	"proc/loadavg": {Data: []byte("0.25 1.50 2.75 3/123 4567\n")},
}

func TestReadHost(t *testing.T) {
	var got Machine
	got.readHost(recorded)
	want := Machine{
		KernelRelease: "6.18.0-test", CPUModel: "Test CPU @ 3 GHz: fast", CPUsAllowed: "0-1", Hypervisor: true,
		ClockSource: "tsc", MemoryTotalBytes: 2 << 30, MemoryAvailableBytes: 1 << 30, BPFJITEnable: "1",
		LoadAverage1m: 0.25, LoadAverage5m: 1.5, LoadAverage15m: 2.75,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAvailableInAControlGroup(t *testing.T) {
	for text, want := range map[string]uint64{"max\n": 1 << 30, "536870912\n": 512 << 20, "4294967296\n": 1 << 30} {
		root := maps.Clone(recorded)
		root["sys/fs/cgroup/memory.max"] = &fstest.MapFile{Data: []byte(text)}
		var m Machine
		if m.readHost(root); m.MemoryAvailableBytes != want {
			t.Errorf("memory.max %q: %d available, want %d", text, m.MemoryAvailableBytes, want)
		}
	}
}

// TestUnknownFactsAreNamed takes one file away at a time.
func TestUnknownFactsAreNamed(t *testing.T) {
	for path, want := range map[string]string{
		"proc/sys/kernel/osrelease":                                       "kernel_release",
		"proc/sys/net/core/bpf_jit_enable":                                "bpf_jit_enable",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "clock_source",
		"proc/self/status":                                                "cpus_allowed",
		"proc/cpuinfo":                                                    "cpu_model",
		"proc/meminfo":                                                    "memory_total_bytes memory_available_bytes",
		"proc/loadavg":                                                    "load_average_1m load_average_5m load_average_15m",
	} {
		root := fstest.MapFS{}
		for name, file := range recorded {
			if name != path {
				root[name] = file
			}
		}
		var m Machine
		m.readHost(root)
		if got := strings.Join(m.Unknown, " "); got != want {
			t.Errorf("without %s: unknown is %q, want %q", path, got, want)
		}
	}
}

func TestReadBuild(t *testing.T) {
	for _, test := range []struct {
		name string
		info debug.BuildInfo
		want Machine
	}{
		{"our own program", debug.BuildInfo{
			Main:     debug.Module{Path: modulePath, Version: "v1.2.3"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
		}, Machine{ModuleVersion: "v1.2.3", VCSRevision: "abc", VCSModified: true}},
		{"a user's program", debug.BuildInfo{
			Main: debug.Module{Path: "example.com/user", Version: "v9.9.9"},
			Deps: []*debug.Module{{Path: modulePath, Version: "v1.0.0"}},
		}, Machine{ModuleVersion: "v1.0.0", Unknown: []string{"vcs_revision"}}},
	} {
		var got Machine
		got.readBuild(&test.info)
		test.want.GoVersion = runtime.Version()
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestFactsOfThisMachine holds wherever the tests run, in a namespace too.
func TestFactsOfThisMachine(t *testing.T) {
	m := Facts()
	if m.KernelRelease == "" || m.CPUsAllowed == "" || m.MemoryTotalBytes == 0 || m.CPUCount < 1 ||
		m.GOMAXPROCS != runtime.GOMAXPROCS(0) || m.GoVersion == "" || m.MemlockLimitBytes == 0 {
		t.Errorf("facts: %+v", m)
	}
	for _, name := range []string{"kernel_release", "cpus_allowed", "gogc_percent", "gomemlimit_bytes"} {
		if slices.Contains(m.Unknown, name) {
			t.Errorf("%s is unknown", name)
		}
	}
	percent := debug.SetGCPercent(123)
	defer debug.SetGCPercent(percent)
	if got := Facts().GOGCPercent; got != 123 {
		t.Errorf("GOGC is %d, want 123", got)
	}
	debug.SetGCPercent(-1)
	if got := Facts(); got.GOGCPercent != -1 || !strings.Contains(got.String(), "GOGC off") {
		t.Errorf("with the collector off: %d, %v", got.GOGCPercent, got)
	}
}

func TestString(t *testing.T) {
	m := Machine{
		Arch: "amd64", CPUCount: 2, MemlockLimitBytes: 8 << 20, GoVersion: "go1.26.0", ModuleVersion: "v1.2.3",
		VCSRevision: "0123456789abcdef", VCSModified: true, GOMAXPROCS: 1, GOGCPercent: 400,
	}
	m.readHost(recorded)
	want := "Linux 6.18.0-test amd64, Test CPU @ 3 GHz: fast (virtual), CPUs 0-1 of 2, clock tsc, 2.0 GiB, memlock 8192 KiB, " +
		"bpf jit 1; go1.26.0, stillwater v1.2.3 (0123456789ab+changes), GOMAXPROCS 1, GOGC 400; load 0.25 1.50 2.75"
	if got := m.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if nothing := (Machine{}).String(); strings.Contains(nothing, "\n") || !strings.Contains(nothing, "unknown CPU") {
		t.Errorf("the line of no machine: %q", nothing)
	}
}

// TestJSONRoundTrip guards the names that result files are read by.
func TestJSONRoundTrip(t *testing.T) {
	want := Facts()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Machine
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, name := range []string{"kernel_release", "memlock_limit_bytes", "gogc_percent", "load_average_1m"} {
		if !strings.Contains(string(data), `"`+name+`"`) {
			t.Errorf("no %s in %s", name, data)
		}
	}
}
