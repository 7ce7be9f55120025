//go:build linux

package contract

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// Steering is a program of the tests' own, since xsk and bpf know nothing of each other: UDP to [Port] gets its arrival time
// as metadata and goes to the socket of its queue, everything else to the kernel.
type Steering struct {
	xsks       *ebpf.Map
	program    *ebpf.Program
	attachment link.Link
}

// NewSteering attaches the program natively; on error nothing is left.
func NewSteering(ifindex int) (_ *Steering, err error) {
	s := &Steering{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.xsks, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 16}); err != nil {
		return nil, err
	}
	if s.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "xsk_test", Type: ebpf.XDP, License: "GPL", Instructions: steerInstructions(s.xsks.FD()),
	}); err != nil {
		return nil, err
	}
	s.attachment, err = link.AttachXDP(link.XDPOptions{Program: s.program, Interface: ifindex, Flags: link.XDPDriverMode})
	return s, err
}

// steerInstructions is the program. The offsets of R6 are those of struct xdp_md (include/uapi/linux/bpf.h): data 0, data_end 4,
// data_meta 8, rx_queue_index 16. The verdicts are those of enum xdp_action: XDP_PASS 2, XDP_REDIRECT 4.
func steerInstructions(xsks int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, 0, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, 42),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R5, asm.R2, 12, asm.Half), // EtherType
		asm.HostTo(asm.BE, asm.R5, asm.Half),
		asm.JNE.Imm(asm.R5, 0x0800, "pass"),
		asm.LoadMem(asm.R5, asm.R2, 23, asm.Byte), // protocol
		asm.JNE.Imm(asm.R5, 17, "pass"),
		asm.LoadMem(asm.R5, asm.R2, 36, asm.Half), // destination port
		asm.HostTo(asm.BE, asm.R5, asm.Half),
		asm.JNE.Imm(asm.R5, Port, "pass"),

		asm.LoadMapPtr(asm.R1, xsks),
		asm.LoadMem(asm.R2, asm.R6, 16, asm.Word),
		asm.Mov.Imm(asm.R3, 2), // what is returned where no socket is
		asm.FnRedirectMap.Call(),
		asm.JNE.Imm(asm.R0, 4, "pass"),

		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, -8),
		asm.FnXdpAdjustMeta.Call(),
		asm.JNE.Imm(asm.R0, 0, "redirect"),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R2, asm.R6, 8, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, 0, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, 8),
		asm.JGT.Reg(asm.R4, asm.R3, "redirect"),
		asm.StoreMem(asm.R2, 0, asm.R0, asm.DWord),

		asm.Mov.Imm(asm.R0, 4).WithSymbol("redirect"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("pass"),
		asm.Return(),
	}
}

// SetSocket registers the socket of a queue.
func (s *Steering) SetSocket(queue uint32, fd int) error { return s.xsks.Put(queue, uint32(fd)) }

// Close detaches the program and frees it.
func (s *Steering) Close() error {
	var errs []error
	if s.attachment != nil {
		errs = append(errs, s.attachment.Close())
	}
	return errors.Join(append(errs, s.program.Close(), s.xsks.Close())...) // both take nil
}
