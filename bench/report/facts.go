package report

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Fact is one thing that a reader must know to judge or repeat a result.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MachineFacts describes this machine and this binary. What cannot be read is left out.
func MachineFacts() []Fact {
	facts := []Fact{}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, value})
		}
	}
	add("processor", processor("/proc/cpuinfo"))
	add("logical CPUs", strconv.Itoa(runtime.NumCPU()))
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		add("kernel", unix.ByteSliceToString(u.Sysname[:])+" "+unix.ByteSliceToString(u.Release[:]))
	}
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) == nil {
		add("memory", strconv.FormatUint(uint64(s.Totalram)*uint64(s.Unit)>>20, 10)+" MiB")
	}
	add("Go", runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH)
	add("GOMAXPROCS", strconv.Itoa(runtime.GOMAXPROCS(0)))
	add("revision", revision())
	return facts
}

// processor returns the model name that Linux reports.
func processor(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// revision returns the commit that the binary was built from, and whether it was changed.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var commit, changed string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	return commit + changed
}
