//go:build linux && !portable

package udpport

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// groupTries bounds the search for a port that nobody takes between two looks.
const groupTries = 16

// OpenGroup opens ports at one address, one for each of count dispatchers. The kernel gives each packet to its dispatcher's port, by the rules of
// package dispatcher/handover, but for the word of a server that knows no connection, which comes by the first.
func OpenGroup(cfg Config, count int) (ports []*Port, err error) {
	if count < 1 || count > session.OwnersMax {
		return nil, fmt.Errorf("udpport: %d ports: legal are 1 to %d", count, session.OwnersMax)
	}
	for range groupTries {
		if ports, err = openGroup(cfg, count); err == nil || cfg.Listen.Port() != 0 || !errors.Is(err, unix.EADDRINUSE) {
			return ports, err
		}
	}
	return nil, err
}

// openGroup takes the port alone first: the sockets of a group are let in to it beside others of the same user that are of a group too, which
// would be another endpoint's.
func openGroup(cfg Config, count int) (ports []*Port, err error) {
	first, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	if count == 1 {
		return []*Port{first}, nil
	}
	cfg.Listen = netip.AddrPortFrom(cfg.Listen.Addr(), first.LocalAddr().Port)
	if err := first.Close(); err != nil {
		return nil, err
	}
	for range count {
		p, err := open(cfg, func(fd int) error {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		if err != nil {
			return nil, errors.Join(err, closeGroup(ports))
		}
		ports = append(ports, p)
	}
	program := steering(uint32(count))
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(ports[0].fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &fprog); err != nil {
		return nil, errors.Join(fmt.Errorf("udpport: tell the kernel which dispatcher a packet is of: %w", err), closeGroup(ports))
	}
	return ports, nil
}

func closeGroup(ports []*Port) error {
	var errs []error
	for _, p := range ports {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Where a packet has what decides whose it is. See ARCHITECTURE.md, section 2.
const (
	flagsAt  = 1
	ownerAt  = 4 // the connection id's first byte, whose high bits are the owner
	openerAt = wire.HeaderBytes + wire.MessageHeaderBytes
	idleBits = 2 // of that byte that are not the owner's
)

// steering is the program that tells the kernel which socket of a group a packet is for, by its place in the order of binding. It is
// classic BPF, over the UDP payload: owner of the id, or [session.OpenOwner]. What is too short comes to the first.
func steering(count uint32) []unix.SockFilter {
	const (
		loadByte, loadWord = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		keep               = unix.BPF_MISC | unix.BPF_TAX // as X
		xorKept            = unix.BPF_ALU | unix.BPF_XOR | unix.BPF_X
		right              = unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K
		times              = unix.BPF_ALU | unix.BPF_MUL | unix.BPF_K
		modulo             = unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K
		answer             = unix.BPF_RET | unix.BPF_A
	)
	return []unix.SockFilter{
		{Code: loadByte, K: flagsAt},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: uint32(wire.PacketHandshake), Jt: 3},
		{Code: loadByte, K: ownerAt},
		{Code: right, K: idleBits},
		{Code: answer},
		{Code: loadWord, K: openerAt},
		{Code: keep},
		{Code: loadWord, K: openerAt + 4},
		{Code: xorKept},
		{Code: keep},
		{Code: right, K: session.OwnerShift},
		{Code: xorKept},
		{Code: times, K: session.OwnerMultiplier},
		{Code: right, K: session.OwnerShift},
		{Code: modulo, K: count},
		{Code: answer},
	}
}
