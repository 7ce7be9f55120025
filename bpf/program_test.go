//go:build linux

package bpf

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

var (
	testService = netip.MustParseAddr("10.77.0.2")
	testIPv6    = netip.MustParseAddr("fd77::2")
	testPort    = uint16(4711)
)

// loadTest loads a program with the test service registered at both its addresses and, if asked, an (unbound) socket on queue 0.
func loadTest(t testing.TB, socket bool) *Program {
	t.Helper()
	program, err := Load(Options{})
	labtest.Must(t, err)
	t.Cleanup(func() {
		if err := program.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, addr := range []netip.Addr{testService, testIPv6} {
		if err := program.RegisterService(addr, testPort); err != nil {
			t.Fatal(err)
		}
	}
	if socket {
		if err := program.SetSocket(0, xsk(t)); err != nil {
			t.Fatal(err)
		}
	}
	return program
}

// xsk is an AF_XDP socket that is bound to nothing.
func xsk(t testing.TB) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// packet is a well-formed datagram of ours; mutations bend it.
func packet(payload int, mutations ...func([]byte) []byte) []byte {
	p := make([]byte, 42+payload)
	copy(p, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00})
	ip, udp := p[14:], p[34:]
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], uint16(28+payload))
	copy(ip[12:], []byte{10, 77, 0, 1})
	copy(ip[16:], testService.AsSlice())
	fillUDP(udp)
	return mutated(p, mutations)
}

// packetIPv6 is the same over IPv6.
func packetIPv6(payload int, mutations ...func([]byte) []byte) []byte {
	p := make([]byte, 62+payload)
	copy(p, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd})
	ip, udp := p[14:], p[54:]
	ip[0], ip[6], ip[7] = 0x60, unix.IPPROTO_UDP, 64
	binary.BigEndian.PutUint16(ip[4:], uint16(8+payload))
	copy(ip[8:], []byte{0xfd, 0x77})
	ip[23] = 1
	copy(ip[24:], testIPv6.AsSlice())
	fillUDP(udp)
	return mutated(p, mutations)
}

// fillUDP makes a datagram to the test's port, without a checksum: the program does not look at it.
func fillUDP(udp []byte) {
	binary.BigEndian.PutUint16(udp, 1234)
	binary.BigEndian.PutUint16(udp[2:], testPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	for i := range udp[8:] {
		udp[8+i] = byte(i)
	}
}

func mutated(p []byte, mutations []func([]byte) []byte) []byte {
	for _, mutate := range mutations {
		p = mutate(p)
	}
	return p
}

// set overwrites bytes at an offset.
func set(offset int, values ...byte) func([]byte) []byte {
	return func(p []byte) []byte { copy(p[offset:], values); return p }
}

// insert puts bytes in at an offset.
func insert(offset int, values ...byte) func([]byte) []byte {
	return func(p []byte) []byte { return slices.Insert(p, offset, values...) }
}

// steered runs one packet and returns the reason, which must be the only counter that moved, the verdict, and the packet after.
func steered(t testing.TB, program *Program, opts ebpf.RunOptions) (Reason, uint32, []byte) {
	t.Helper()
	before, err := program.Verdicts()
	if err != nil {
		t.Fatal(err)
	}
	opts.DataOut = make([]byte, len(opts.Data)+512)
	verdict, err := program.objects.StillwaterXdp.Run(&opts)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	after, err := program.Verdicts()
	if err != nil {
		t.Fatal(err)
	}
	reason, moved := Reason(0), uint64(0)
	for i := range after {
		if delta := after[i].Count - before[i].Count; delta != 0 {
			reason, moved = after[i].Reason, moved+delta
		}
	}
	if moved != 1 {
		t.Fatalf("one packet moved the counters by %d", moved)
	}
	return reason, verdict, opts.DataOut
}
