//go:build linux

package doctor

import (
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// tree is a file system with proc and sys in it.
type tree struct{ fs.FS }

// read reads a file; ok is false if it cannot be had.
func (t tree) read(name string) (text string, ok bool) {
	data, err := fs.ReadFile(t, name)
	return strings.TrimSpace(string(data)), err == nil
}

func (t tree) exists(name string) bool {
	_, err := fs.Stat(t, name)
	return err == nil
}

// statusField reads a line "Name: value" of /proc/self/status.
func (t tree) statusField(name string) (string, bool) {
	text, _ := t.read(fileStatus)
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(line, ":"); found && key == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// The files of the process itself.
const (
	fileStatus = "proc/self/status"
	fileLimits = "proc/self/limits"
	fileUIDMap = "proc/self/uid_map"
	fileCgroup = "proc/self/cgroup"
)

// cpuMax keeps a slip like 0-99999999 from becoming a list of that length.
const cpuMax = 1 << 16

// cpuList reads the kernel's notation, like 0-3,8. ok is false if it is something else.
func cpuList(text string) (cpus []int, ok bool) {
	if text == "" {
		return nil, false
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 32)
		to, err2 := strconv.ParseUint(last, 10, 32)
		if err != nil || err2 != nil || from > to || to >= cpuMax {
			return nil, false
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	return cpus, true
}

// version is a kernel's major and minor number.
type version struct{ major, minor int }

// parseVersion reads a release like 5.15.0-91-generic.
func parseVersion(release string) (v version, ok bool) {
	major, rest, found := strings.Cut(release, ".")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	var err, err2 error
	v.major, err = strconv.Atoi(major)
	v.minor, err2 = strconv.Atoi(rest[:digits])
	return v, found && err == nil && err2 == nil
}

func (v version) before(other version) bool {
	return v.major < other.major || v.major == other.major && v.minor < other.minor
}

// limit reads the soft limit of a line of /proc/self/limits; unlimited is math.MaxInt64.
func (t tree) limit(name string) (int64, bool) {
	text, _ := t.read(fileLimits)
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name)
		words := strings.Fields(rest)
		if !found || len(words) == 0 {
			continue
		}
		if words[0] == "unlimited" {
			return math.MaxInt64, true
		}
		limit, err := strconv.ParseInt(words[0], 10, 64)
		return limit, err == nil
	}
	return 0, false
}
