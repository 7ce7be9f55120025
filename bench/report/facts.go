package report

import (
	"cmp"
	"fmt"
	"strconv"

	hw "github.com/stillwater-rpc/stillwater/hw/report"
)

// Fact is one thing that a reader must know to judge or repeat a result.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MachineFacts describes this machine and this binary for a page. What cannot be read is left out.
func MachineFacts() []Fact {
	m := hw.Facts()
	facts := []Fact{}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, value})
		}
	}
	add("processor", m.CPUModel)
	add("CPUs", fmt.Sprintf("%s of %d", m.CPUsAllowed, m.CPUCount))
	add("kernel", m.KernelRelease+" "+m.Arch)
	add("memory", strconv.FormatUint(m.MemoryTotalBytes>>20, 10)+" MiB")
	add("load average", strconv.FormatFloat(m.LoadAverage1m, 'f', 2, 64))
	add("Go", m.GoVersion)
	add("GOMAXPROCS", strconv.Itoa(m.GOMAXPROCS))
	revision := m.VCSRevision
	if m.VCSModified {
		revision += " with changes"
	}
	add("revision", cmp.Or(revision, m.ModuleVersion))
	return facts
}
