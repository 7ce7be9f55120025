//go:build linux

package bpf

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

// TestLoadObject loads our own object as a user's, with all its maps and with the fewest.
func TestLoadObject(t *testing.T) {
	program, err := LoadObject("steer_bpfel.o", Options{})
	labtest.Must(t, err)
	defer program.Close()
	if services, err := program.Services(); len(services) != 0 || err != nil {
		t.Errorf("services of the probe: %v, %v", services, err)
	}
	verdicts, err := program.Verdicts()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Count != 0 {
			t.Errorf("%v counted %d packets of the probe", v.Reason, v.Count)
		}
	}
	if _, err := LoadObject(filepath.Join(t.TempDir(), "none.o"), Options{}); err == nil || !strings.Contains(err.Error(), "none.o") {
		t.Errorf("no object: %v", err)
	}
	if _, err := LoadObject("steer.bpf.c", Options{}); err == nil {
		t.Error("loaded a source")
	}
}

// minimal redirects every UDP packet of IPv4 without looking further, and has neither services nor counters.
func minimal() *ebpf.CollectionSpec {
	return &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{"xsks": {Name: "xsks", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 8}},
		Programs: map[string]*ebpf.ProgramSpec{"mine": {Name: "mine", Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R7, asm.R6, 0, asm.Word), // data
			asm.LoadMem(asm.R8, asm.R6, 4, asm.Word), // data_end
			asm.Mov.Reg(asm.R1, asm.R7),
			asm.Add.Imm(asm.R1, 24),
			asm.JGT.Reg(asm.R1, asm.R8, "pass"),
			asm.LoadMem(asm.R1, asm.R7, 12, asm.Half),
			asm.JNE.Imm(asm.R1, 0x0008, "pass"),
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Imm(asm.R2, -8),
			asm.FnXdpAdjustMeta.Call(),
			asm.JNE.Imm(asm.R0, 0, "pass"),
			asm.FnKtimeGetNs.Call(),
			asm.LoadMem(asm.R7, asm.R6, 8, asm.Word), // data_meta
			asm.LoadMem(asm.R8, asm.R6, 0, asm.Word),
			asm.Mov.Reg(asm.R1, asm.R7),
			asm.Add.Imm(asm.R1, 8),
			asm.JGT.Reg(asm.R1, asm.R8, "pass"),
			asm.StoreMem(asm.R7, 0, asm.R0, asm.DWord),
			asm.LoadMapPtr(asm.R1, 0).WithReference("xsks"),
			asm.LoadMem(asm.R2, asm.R6, 16, asm.Word), // rx_queue_index
			asm.Mov.Imm(asm.R3, verdictPass),
			asm.FnRedirectMap.Call(),
			asm.Return(),
			asm.Mov.Imm(asm.R0, verdictPass).WithSymbol("pass"),
			asm.Return(),
		}}},
	}
}

func TestMinimalObject(t *testing.T) {
	program, err := loadChecked("minimal.o", minimal(), Options{})
	labtest.Must(t, err)
	defer program.Close()
	if err := errors.Join(program.RegisterService(testService, testPort), program.UnregisterService(testService, testPort)); err != nil {
		t.Error(err)
	}
	if services, err := program.Services(); services != nil || err != nil {
		t.Errorf("services %v, %v", services, err)
	}
	if _, err := program.Verdicts(); !errors.Is(err, ErrNoCounters) {
		t.Errorf("verdicts: %v", err)
	}
}

// patch replaces the instructions of our own program.
func patch(spec *ebpf.CollectionSpec, instructions ...asm.Instruction) {
	program := spec.Programs[programName]
	program.Instructions = append(asm.Instructions{instructions[0].WithMetadata(program.Instructions[0].Metadata)}, instructions[1:]...)
}

// always answers every packet with one verdict, with calls that look as if it kept the contract.
func always(spec *ebpf.CollectionSpec, verdict int32) {
	alibi := minimal().Programs["mine"].Instructions
	alibi[0] = alibi[0].WithSymbol("alibi")
	patch(spec, append(asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Sub.Reg(asm.R3, asm.R2), asm.JGT.Imm(asm.R3, 60000, "alibi"), // which no packet is
		asm.Mov.Imm(asm.R0, verdict), asm.Return(),
	}, alibi...)...)
}

// TestContract bends an object in every way that the contract forbids.
func TestContract(t *testing.T) {
	loadTest(t, false) // for the rights
	for _, test := range []struct {
		name string
		bend func(spec *ebpf.CollectionSpec)
		want string
	}{
		{"no program", func(spec *ebpf.CollectionSpec) { clear(spec.Programs) }, `mark it with SEC("xdp")`},
		{"another type", func(spec *ebpf.CollectionSpec) { spec.Programs[programName].Type = ebpf.SocketFilter }, "no XDP program"},
		{"two programs", func(spec *ebpf.CollectionSpec) { spec.Programs["a"] = spec.Programs[programName] }, "several XDP programs (a, stillwater_xdp)"},
		{"no xsks", func(spec *ebpf.CollectionSpec) { delete(spec.Maps, "xsks") }, "map xsks is missing: XSKMap, keys of 4 bytes"},
		{"xsks of another type", func(spec *ebpf.CollectionSpec) { spec.Maps["xsks"].Type = ebpf.DevMap }, "map xsks is a DevMap"},
		{"services with other keys", func(spec *ebpf.CollectionSpec) { spec.Maps["services"].KeySize = 8 }, "map services is a Hash with keys of 8"},
		{"verdicts of one CPU", func(spec *ebpf.CollectionSpec) { spec.Maps["verdicts"].Type = ebpf.Array }, "has to be a PerCPUArray"},
		{"no calls", func(spec *ebpf.CollectionSpec) { patch(spec, asm.Mov.Imm(asm.R0, verdictPass), asm.Return()) },
			"never redirects to xsks: call bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS); program stillwater_xdp writes no arrival stamp"},
		{"drops all", func(spec *ebpf.CollectionSpec) { always(spec, 1) }, "it answers ARP with verdict 1"},
		{"passes all", func(spec *ebpf.CollectionSpec) { always(spec, verdictPass) }, "it answers a service's packet with verdict 2, and has to redirect it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, err := loadSteer()
			if err != nil {
				t.Fatal(err)
			}
			test.bend(spec)
			program, err := loadChecked("bent.o", spec, Options{})
			if err == nil {
				t.Fatal("loaded", program.Close())
			}
			if broken, ok := errors.AsType[*ContractError](err); !ok || broken.Object != "bent.o" || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// TestProbeStamp catches programs that take packets of nobody, and that stamp wrongly.
func TestProbeStamp(t *testing.T) {
	loadTest(t, false) // for the rights
	for _, test := range []struct {
		name, want string
		bend       func(asm.Instructions)
	}{
		{"takes what is not registered", "it answers UDP to no service with verdict 4", func(asm.Instructions) {}},
		{"stamps zero", "are not its arrival time", func(in asm.Instructions) { in[12] = asm.Mov.Imm(asm.R0, 0) }},
		{"stamps more", "are 16 bytes", func(in asm.Instructions) { in[9] = asm.Mov.Imm(asm.R2, -16) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := minimal()
			test.bend(spec.Programs["mine"].Instructions)
			program, err := loadSpec(spec, "mine")
			if err != nil {
				t.Fatal(err)
			}
			defer program.Close()
			faults := probeTaken(t, program)
			if got := strings.Join(faults, "; "); !strings.Contains(got, test.want) {
				t.Errorf("faults %q, want %q in them", got, test.want)
			}
		})
	}
}

// probeTaken probes a program that takes every packet, with and without a socket.
func probeTaken(t *testing.T, program *Program) []string {
	t.Helper()
	var err error
	program.objects.Services, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 20, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	fd := xsk(t)
	if err := program.SetSocket(0, fd); err != nil {
		t.Fatal(err)
	}
	faults, err := probe(program)
	if err != nil {
		t.Fatal(err)
	}
	return faults
}
