//go:build linux

package bpf

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The verdicts of include/uapi/linux/bpf.h, enum xdp_action, that the contract knows.
const (
	verdictPass     = 2
	verdictRedirect = 4
)

// probeService is where a probe goes: an address for documentation (RFC 5737).
var probeService = netip.MustParseAddrPort("192.0.2.1:7700")

// probe runs packets through a program that is not attached, and returns what it did wrong. Of a program without a map of services nobody
// knows which packets it takes, so that only what it has to pass can be probed.
func probe(p *Program) (faults []string, err error) {
	arp := make([]byte, 60)
	binary.BigEndian.PutUint16(arp[12:], 0x0806)
	ours := probeDatagram()
	expectPass := func(what string, packet []byte) error {
		verdict, _, err := p.run(packet)
		if err == nil && verdict != verdictPass {
			faults = append(faults, fmt.Sprintf("it answers %s with verdict %d, and has to pass it (%d)", what, verdict, verdictPass))
		}
		return err
	}
	if err := expectPass("ARP", arp); err != nil || p.objects.Services == nil {
		return faults, err
	}
	if err := expectPass("UDP to no service", ours); err != nil {
		return nil, err
	}
	if err := p.RegisterService(probeService.Addr(), probeService.Port()); err != nil {
		return nil, err
	}
	if err := expectPass("a service's packet on a queue without a socket", ours); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket to redirect to: %w", err)
	}
	defer unix.Close(fd)
	if err := p.SetSocket(0, fd); err != nil {
		return nil, err
	}
	stamp, err := p.probeRedirect(ours)
	return append(faults, stamp...), err
}

// probeRedirect expects a packet to be redirected, unchanged, with its arrival time in the eight bytes before it.
func (p *Program) probeRedirect(packet []byte) ([]string, error) {
	before, err := monotonicNow()
	if err != nil {
		return nil, err
	}
	verdict, out, err := p.run(packet)
	if err != nil {
		return nil, err
	}
	after, err := monotonicNow()
	if err != nil {
		return nil, err
	}
	if verdict != verdictRedirect {
		return []string{fmt.Sprintf("it answers a service's packet with verdict %d, and has to redirect it (%d)", verdict, verdictRedirect)}, nil
	}
	// The kernel hands metadata and packet back as one (net/bpf/test_run.c).
	const stampSize = 8
	if len(out) != len(packet)+stampSize {
		return []string{fmt.Sprintf("before a redirected packet are %d bytes, it has to be a stamp of %d", len(out)-len(packet), stampSize)}, nil
	}
	var faults []string
	if stamp := binary.NativeEndian.Uint64(out); stamp < before || stamp > after {
		faults = append(faults, "the 8 bytes before a redirected packet are not its arrival time by bpf_ktime_get_ns")
	}
	if string(out[stampSize:]) != string(packet) {
		faults = append(faults, "it changes the bytes of a redirected packet")
	}
	return faults, nil
}

// run runs the program on a packet of queue 0.
func (p *Program) run(packet []byte) (verdict uint32, out []byte, err error) {
	opts := ebpf.RunOptions{Data: packet, DataOut: make([]byte, len(packet)+unix.XDP_PACKET_HEADROOM)}
	verdict, err = p.objects.StillwaterXdp.Run(&opts)
	return verdict, opts.DataOut, err
}

func monotonicNow() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint64(now.Nano()), nil
}

// probeDatagram is a whole UDP datagram to the probe's service, with correct lengths and header checksum.
func probeDatagram() []byte {
	const payload = 18 // Ethernet's shortest
	packet := make([]byte, 42+payload)
	binary.BigEndian.PutUint16(packet[12:], 0x0800)
	ip, udp := packet[14:34], packet[34:]
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], uint16(len(packet)-14))
	copy(ip[12:], []byte{192, 0, 2, 2})
	copy(ip[16:], probeService.Addr().AsSlice())
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	binary.BigEndian.PutUint16(udp, 1234)
	binary.BigEndian.PutUint16(udp[2:], probeService.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	return packet
}
