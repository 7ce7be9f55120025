//go:build linux

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// ErrNoCounters means that a program has no verdict counters: it is not ours, whatever its name.
var ErrNoCounters = errors.New("bpf: program has no verdict counters")

// VerdictsOf returns the counts of a program that another process loaded, in order of the reasons. It needs CAP_SYS_ADMIN,
// since the kernel hands out programs and maps by their ids to nobody else.
func VerdictsOf(programID uint32) ([]VerdictCount, error) {
	counters, err := countersOf(ebpf.ProgramID(programID))
	if err != nil {
		return nil, fmt.Errorf("bpf: find the counters of program %d: %w", programID, err)
	}
	defer counters.Close()
	return readVerdicts(counters)
}

// countersOf finds the map of counters among those of a program. A program is only trusted to be ours if the map has the
// form of ours.
func countersOf(id ebpf.ProgramID) (*ebpf.Map, error) {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs() // none where the kernel does not tell
	for _, id := range ids {
		found, err := ebpf.NewMapFromID(id)
		if err != nil {
			return nil, err
		}
		about, err := found.Info()
		if err == nil && about.Name == steerMapVerdicts && found.Type() == ebpf.PerCPUArray &&
			found.ValueSize() == 8 {
			return found, nil
		}
		if err := errors.Join(err, found.Close()); err != nil {
			return nil, err
		}
	}
	return nil, ErrNoCounters
}

// readVerdicts reads all counters of a map. A program of another version may have more or fewer reasons than this one.
func readVerdicts(counters *ebpf.Map) ([]VerdictCount, error) {
	verdicts := make([]VerdictCount, counters.MaxEntries())
	var perCPU []uint64
	for i := range verdicts {
		verdicts[i].Reason = Reason(i)
		if err := counters.Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("bpf: read the count of %v: %w", Reason(i), err)
		}
		for _, count := range perCPU {
			verdicts[i].Count += count
		}
	}
	return verdicts, nil
}
