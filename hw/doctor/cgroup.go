//go:build linux

package doctor

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

const directoryCgroup = "sys/fs/cgroup"

// cgroupCPUMax looks for the tightest quota of CPU time, of our cgroup and those above it.
func cgroupCPUMax(e *examination) []Item {
	s := subject{
		"cgroup.cpu_max", "no quota", "a poller uses its CPU all the time, so a quota stops it for the rest of each period, tens of milliseconds", "",
	}
	text, ok := e.read(fileCgroup)
	if !ok {
		return s.missing(fileCgroup)
	}
	quota, found := 0.0, false
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for directory := path.Clean("/" + fields[2]); ; directory = path.Dir(directory) {
			file, cpus, limited := e.quota(fields[1], directory)
			found = found || file != ""
			if limited && (quota == 0 || cpus < quota) {
				quota = cpus
				s.cure = fmt.Sprintf("echo %s > /%s # or docker run without --cpus; or a pod without a CPU limit", unlimitedText(fields[1]), file)
			}
			if directory == "/" {
				break
			}
		}
	}
	switch {
	case quota > 0:
		return s.warn("%.2f CPUs", quota)
	case !found && !e.exists(directoryCgroup):
		return s.missing(directoryCgroup)
	}
	return s.ok("no quota")
}

// unlimitedText is what takes a quota away.
func unlimitedText(controllers string) string {
	if controllers == "" {
		return "max"
	}
	return "-1"
}

// quota reads the quota of one cgroup, in CPUs: cpu.max of version 2, whose line in /proc/self/cgroup names no controllers, or cpu.cfs_quota_us of
// version 1. file is empty if there is none to read.
func (e *examination) quota(controllers, directory string) (file string, cpus float64, limited bool) {
	var quota, period string
	switch {
	case controllers == "":
		file = path.Join(directoryCgroup, directory, "cpu.max")
		text, _ := e.read(file)
		quota, period, _ = strings.Cut(text, " ")
	case slices.Contains(strings.Split(controllers, ","), "cpu"):
		file = path.Join(directoryCgroup, "cpu", directory, "cpu.cfs_quota_us")
		quota, _ = e.read(file)
		period, _ = e.read(path.Join(directoryCgroup, "cpu", directory, "cpu.cfs_period_us"))
	}
	if quota == "" {
		return "", 0, false
	}
	q, err := strconv.ParseInt(quota, 10, 64)
	p, err2 := strconv.ParseInt(period, 10, 64)
	if err != nil || err2 != nil || q <= 0 || p <= 0 { // max, and -1, are no limit
		return file, 0, false
	}
	return file, float64(q) / float64(p), true
}
