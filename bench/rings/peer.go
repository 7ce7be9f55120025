//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/stillwater-rpc/stillwater/bench/lab"
)

// peerChild is the process at the other end, the same for both arms.
type peerChild struct {
	place      lab.Place
	device     *net.Interface
	attachment link.Link // of the program that is there, nil if none is
	dropped    *ebpf.Map // per CPU
	stop       atomic.Bool
	flooded    chan error // what became of the flood, nil if there is none
}

// verdicts of enum xdp_action (include/uapi/linux/bpf.h).
const (
	xdpDrop = 1
	xdpTx   = 3
)

// drop attaches a program that counts what comes, and drops it.
func (p *peerChild) drop() (err error) {
	if p.dropped, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return err
	}
	return p.attach(asm.Instructions{
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, p.dropped.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("drop"),
		asm.Return(),
	})
}

// echo attaches a program that sends back what comes.
func (p *peerChild) echo() error {
	return p.attach(asm.Instructions{asm.Mov.Imm(asm.R0, xdpTx), asm.Return()})
}

// attach puts a program in the place of the one that is there.
func (p *peerChild) attach(instructions asm.Instructions) error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "rings_peer", Type: ebpf.XDP, License: "MIT", Instructions: instructions})
	if err != nil {
		return err
	}
	defer program.Close() // the link keeps it
	if err := p.detach(); err != nil {
		return err
	}
	p.attachment, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: p.device.Index, Flags: link.XDPDriverMode})
	return err
}

func (p *peerChild) detach() error {
	if p.attachment == nil {
		return nil
	}
	err := p.attachment.Close()
	p.attachment = nil
	return err
}

// count is how many packets were counted and dropped.
func (p *peerChild) count() (total uint64, err error) {
	var each []uint64
	if err := p.dropped.Lookup(uint32(0), &each); err != nil {
		return 0, err
	}
	for _, n := range each {
		total += n
	}
	return total, nil
}

// flood begins to send in bursts as fast as our rings can, until quiet.
func (p *peerChild) flood() error {
	ring, err := openRing(armOwn, p.device.Index)
	if err != nil {
		return err
	}
	p.stop.Store(false)
	p.flooded = make(chan error, 1)
	go func() { p.flooded <- errors.Join(p.send(ring), ring.close()) }()
	return nil
}

func (p *peerChild) send(ring ring) error {
	for out := packet(p.place, true); !p.stop.Load(); {
		if _, err := ring.send(out, 32); err != nil {
			return fmt.Errorf("flooding: %w", err)
		}
		runtime.Gosched() // to whoever reads what we are told
	}
	return nil
}

// quiet ends the flood, if there is one.
func (p *peerChild) quiet() error {
	if p.flooded == nil {
		return nil
	}
	p.stop.Store(true)
	err := <-p.flooded
	p.flooded = nil
	return err
}

func (p *peerChild) close() error {
	errs := []error{p.quiet(), p.detach()}
	if p.dropped != nil {
		errs = append(errs, p.dropped.Close())
	}
	return errors.Join(errs...)
}
