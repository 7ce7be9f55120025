//go:build linux

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// ContractError says what a user's object lacks of the contract in CONTRACT.md.
type ContractError struct {
	Object string
	Faults []string // each a phrase
}

// Error names everything that is amiss.
func (e *ContractError) Error() string {
	return fmt.Sprintf("bpf: %s does not keep the contract (bpf/CONTRACT.md): %s", e.Object, strings.Join(e.Faults, "; "))
}

// LoadObject is [Load] for a user's program in an ELF object, which has to keep the contract in CONTRACT.md: it is verified, also by running
// packets through it, before anything is attached. What it lacks is a [*ContractError]. It needs CAP_NET_RAW besides, for
// a socket to redirect to.
func LoadObject(path string, opts Options) (*Program, error) {
	spec, err := ebpf.LoadCollectionSpec(path)
	if err != nil {
		return nil, fmt.Errorf("bpf: read the object %s: %w", path, err)
	}
	return loadChecked(path, spec, opts)
}

// loadChecked loads what was read from a path, once it has been checked.
func loadChecked(path string, spec *ebpf.CollectionSpec, opts Options) (*Program, error) {
	name, faults := checkSpec(spec)
	if len(faults) > 0 {
		return nil, &ContractError{path, faults}
	}
	keepOnly(spec, name)
	if size := spec.Variables[steerVarPacketSizeMax]; size != nil {
		if err := size.Set(uint32(cmp.Or(opts.PacketSizeMax, packetSizeMaxDefault))); err != nil {
			return nil, fmt.Errorf("bpf: set the packet size of %s: %w", path, err)
		}
	}
	// What is probed is thrown away, so that the program that is attached begins with empty maps.
	probed, err := loadSpec(spec, name)
	if err != nil {
		return nil, err
	}
	faults, err = probe(probed)
	if err = errors.Join(err, probed.Close()); err != nil {
		return nil, fmt.Errorf("bpf: probe %s: %w", path, err)
	}
	if len(faults) > 0 {
		return nil, &ContractError{path, faults}
	}
	return loadSpec(spec, name)
}

// loadSpec loads a user's program and makes its maps.
func loadSpec(spec *ebpf.CollectionSpec, name string) (*Program, error) {
	all, err := ebpf.NewCollection(spec.Copy())
	if err != nil {
		return nil, loadError(err)
	}
	defer all.Close() // all but what is detached from it
	p := &Program{}
	p.objects.StillwaterXdp = all.DetachProgram(name)
	p.objects.Xsks = all.DetachMap(steerMapXsks)
	p.objects.Services = all.DetachMap(steerMapServices)
	p.objects.Verdicts = all.DetachMap(steerMapVerdicts)
	if err := p.bindOwners(int(p.objects.Xsks.MaxEntries())); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// keepOnly leaves out what need not be loaded, and pins that the object wants to make by itself.
func keepOnly(spec *ebpf.CollectionSpec, program string) {
	for name := range spec.Programs {
		if name != program {
			delete(spec.Programs, name)
		}
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
}

// checkSpec finds the XDP program of an object, and what can be seen to be amiss without running it.
func checkSpec(spec *ebpf.CollectionSpec) (name string, faults []string) {
	for candidate, program := range spec.Programs {
		if program.Type != ebpf.XDP {
			continue
		}
		if name != "" {
			return "", []string{fmt.Sprintf("it has several XDP programs (%s, %s), and there may be one", min(name, candidate), max(name, candidate))}
		}
		name = candidate
	}
	if name == "" {
		return "", []string{`it has no XDP program: mark it with SEC("xdp")`}
	}
	for _, want := range []struct {
		mapContract
		optional bool
	}{{contractXsks, false}, {contractServices, true}, {contractVerdicts, true}} {
		found := spec.Maps[want.name]
		switch {
		case found != nil:
			if err := want.check(found.Type, found.KeySize, found.ValueSize); err != nil {
				faults = append(faults, err.Error())
			}
		case !want.optional:
			faults = append(faults, fmt.Sprintf("map %s is missing: %v, keys of %d bytes, values of %d", want.name, want.kind, want.key, want.value))
		}
	}
	return name, append(faults, checkCalls(spec.Programs[name])...)
}

// checkCalls finds out whether the program can do at all what it has to.
func checkCalls(program *ebpf.ProgramSpec) (faults []string) {
	calls := map[asm.BuiltinFunc]bool{}
	redirects := false
	for _, instruction := range program.Instructions {
		if instruction.IsBuiltinCall() {
			calls[asm.BuiltinFunc(instruction.Constant)] = true
		}
		redirects = redirects || instruction.IsLoadFromMap() && instruction.Reference() == steerMapXsks
	}
	if !calls[asm.FnRedirectMap] || !redirects {
		faults = append(faults, fmt.Sprintf("program %s never redirects to xsks: call bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS)", program.Name))
	}
	if !calls[asm.FnXdpAdjustMeta] || !calls[asm.FnKtimeGetNs] {
		faults = append(faults, fmt.Sprintf("program %s writes no arrival stamp: make room for 8 bytes by bpf_xdp_adjust_meta and put bpf_ktime_get_ns there",
			program.Name))
	}
	return faults
}
