//go:build linux

package doctor

import (
	"slices"
	"testing"
)

// FuzzExamine writes anything into the files that are parsed. Each check ends with a verdict, and what is not well has a cure.
func FuzzExamine(f *testing.F) {
	h := host()
	f.Add(h[fileRelease], h[fileStatus], h[fileLimits], h[fileCgroup], h[directoryCgroup+"/a/b/cpu.max"], h[fileHugePages], "0-7")
	f.Add("5.", "CapEff:\t\nCpus_allowed_list:\t-", "Max locked memory", "4:cpu:..\n::", "1 0", "[", "7-")
	f.Fuzz(func(t *testing.T, release, status, limits, cgroup, cpuMax, hugePages, localCPUs string) {
		files, n := host(), card()
		files[fileRelease], files[fileStatus], files[fileLimits], files[fileCgroup] = release, status, limits, cgroup
		files[directoryCgroup+"/a/b/cpu.max"], files[fileHugePages] = cpuMax, hugePages
		n.LocalCPUs = localCPUs
		r := Examine(facts(files, n))
		for _, i := range r.Items {
			if !slices.Contains([]Verdict{OK, Warn, Fail, Unknown}, i.Verdict) || (i.Verdict == OK) != (i.Cure == "") {
				t.Errorf("%+v", i)
			}
		}
		if r.OKCount+r.WarnCount+r.FailCount+r.UnknownCount != len(r.Items) {
			t.Errorf("the counts are not those of %d items: %+v", len(r.Items), r)
		}
	})
}
