//go:build linux

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
)

// ErrNoCounters means that a program has no verdict counters: it is not ours, whatever its name.
var ErrNoCounters = errors.New("bpf: program has no verdict counters")

// VerdictsOf returns the counts of a program that another process loaded, in order of the reasons. It needs CAP_SYS_ADMIN,
// since the kernel hands out programs and maps by their ids to nobody else.
func VerdictsOf(programID uint32) ([]VerdictCount, error) {
	counters, err := mapOf(ebpf.ProgramID(programID), contractVerdicts)
	if err != nil {
		return nil, fmt.Errorf("bpf: find the counters of program %d: %w", programID, err)
	}
	if counters == nil {
		return nil, fmt.Errorf("bpf: find the counters of program %d: %w", programID, ErrNoCounters)
	}
	defer counters.Close()
	return readVerdicts(counters)
}

// ServicesOf returns what another process registered, as [VerdictsOf] does. It is empty for a program without a map of services.
func ServicesOf(programID uint32) ([]netip.AddrPort, error) {
	services, err := mapOf(ebpf.ProgramID(programID), contractServices)
	if err != nil || services == nil {
		return nil, wrapFind(programID, "services", err)
	}
	defer services.Close()
	return readServices(services)
}

// OwnersOf returns who put a socket into which queue of a program, as [VerdictsOf] does.
func OwnersOf(programID uint32) ([]Owner, error) {
	owners, err := mapOf(ebpf.ProgramID(programID), contractOwners)
	if err != nil || owners == nil {
		return nil, wrapFind(programID, "owners", err)
	}
	defer owners.Close()
	return readOwners(owners)
}

func wrapFind(programID uint32, what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("bpf: find the %s of program %d: %w", what, programID, err)
}

// mapOf finds a map of a program by its name, and returns nil if there is none. It is only trusted to be what its name says if it has the
// form that the contract gives it.
func mapOf(id ebpf.ProgramID, want mapContract) (*ebpf.Map, error) {
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
		if err == nil && about.Name == want.name && want.fits(found) == nil {
			return found, nil
		}
		if err := errors.Join(err, found.Close()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// readServices lists a map of services, in order. Entries that are not of UDP are another version's.
func readServices(services *ebpf.Map) ([]netip.AddrPort, error) {
	var (
		found []netip.AddrPort
		key   steerServiceKey
		flags uint32
	)
	entries := services.Iterate()
	for entries.Next(&key, &flags) {
		if key.Protocol == protocolUDP {
			found = append(found, netip.AddrPortFrom(netip.AddrFrom16(key.Address).Unmap(), binary.BigEndian.Uint16(key.Port[:])))
		}
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("bpf: read the services: %w", err)
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return found, nil
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
