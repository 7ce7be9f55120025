//go:build linux

package bpf

import (
	"testing"

	"golang.org/x/sys/unix"
)

// nextHeader is an extension header of 8 bytes between the fixed header and UDP, counted by the payload length.
func nextHeader(kind byte, body ...byte) func([]byte) []byte {
	return func(p []byte) []byte {
		p = insert(54, append([]byte{unix.IPPROTO_UDP}, append(body, make([]byte, 7-len(body))...)...)...)(p)
		p[20] = kind
		p[19] += 8
		return p
	}
}

var steerIPv6Cases = []struct {
	name   string
	packet []byte
	want   Reason
}{
	{"ours", packetIPv6(64), ReasonRedirected},
	{"ours, empty", packetIPv6(0), ReasonRedirected},
	{"ours, padded", append(packetIPv6(4), make([]byte, 14)...), ReasonRedirected},
	{"ours, with traffic class and flow label", packetIPv6(64, set(14, 0x6f, 0xff, 0xff, 0xff)), ReasonRedirected},
	{"ours, bytes behind the datagram", packetIPv6(64, set(58, 0, 70)), ReasonRedirected},
	{"ours, longest", packetIPv6(packetSizeMaxDefault - 62), ReasonRedirected},
	{"ours, one too long", packetIPv6(packetSizeMaxDefault - 61), ReasonTooLong},
	{"wrong port", packetIPv6(64, set(56, 0x12, 0x68)), ReasonNoService},
	{"port as source", packetIPv6(64, set(54, 0x12, 0x67, 0, 9)), ReasonNoService},
	{"another address", packetIPv6(64, set(53, 3)), ReasonNoService},
	{"another network", packetIPv6(64, set(38, 0xfe, 0x80)), ReasonNoService},
	{"all nodes", packetIPv6(64, set(38, 0xff, 0x02), set(53, 1)), ReasonNoService},
	{"our IPv4 address, mapped", packetIPv6(64, set(38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 2)), ReasonIPv6},
	{"our IPv4 address, compatible", packetIPv6(64, set(38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2)), ReasonNoService},
	{"our IPv4 address, nearly mapped", packetIPv6(64, set(38, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 2)), ReasonNoService},
	{"TCP", packetIPv6(64, set(20, unix.IPPROTO_TCP)), ReasonNotUDP},
	{"ICMPv6, as neighbour discovery", packetIPv6(64, set(20, unix.IPPROTO_ICMPV6)), ReasonNotUDP},
	{"no next header", packetIPv6(64, set(20, unix.IPPROTO_NONE)), ReasonNotUDP},
	{"hop-by-hop options", packetIPv6(64, nextHeader(unix.IPPROTO_HOPOPTS)), ReasonExtension},
	{"router alert, as multicast reports", packetIPv6(64, nextHeader(unix.IPPROTO_HOPOPTS, 0, 5, 2)), ReasonExtension},
	{"destination options", packetIPv6(64, nextHeader(unix.IPPROTO_DSTOPTS)), ReasonExtension},
	{"routing header", packetIPv6(64, nextHeader(unix.IPPROTO_ROUTING)), ReasonExtension},
	{"authentication", packetIPv6(64, nextHeader(unix.IPPROTO_AH)), ReasonExtension},
	{"encryption", packetIPv6(64, nextHeader(unix.IPPROTO_ESP)), ReasonExtension},
	{"mobility", packetIPv6(64, nextHeader(unix.IPPROTO_MH)), ReasonExtension},
	{"host identity", packetIPv6(64, nextHeader(139)), ReasonExtension},
	{"shim6", packetIPv6(64, nextHeader(140)), ReasonExtension},
	{"two of them", packetIPv6(64, nextHeader(unix.IPPROTO_DSTOPTS), nextHeader(unix.IPPROTO_HOPOPTS)), ReasonExtension},
	{"first fragment", packetIPv6(64, nextHeader(unix.IPPROTO_FRAGMENT, 0, 0, 1)), ReasonFragment},
	{"last fragment", packetIPv6(64, nextHeader(unix.IPPROTO_FRAGMENT, 0, 0, 8)), ReasonFragment},
	{"atomic fragment", packetIPv6(64, nextHeader(unix.IPPROTO_FRAGMENT)), ReasonFragment},
	{"fragment behind options", packetIPv6(64, nextHeader(unix.IPPROTO_FRAGMENT), nextHeader(unix.IPPROTO_HOPOPTS)), ReasonExtension},
	{"jumbogram", packetIPv6(64, nextHeader(unix.IPPROTO_HOPOPTS, 0, 0xc2, 4), set(18, 0, 0)), ReasonJumbogram},
	{"no length, and no options", packetIPv6(64, set(18, 0, 0)), ReasonBadLength},
	{"payload length beyond the packet", packetIPv6(64, set(18, 0, 73)), ReasonBadLength},
	{"payload length far beyond", packetIPv6(64, set(18, 0xff, 0xff)), ReasonBadLength},
	{"payload length short of UDP", packetIPv6(64, set(18, 0, 7)), ReasonBadLength},
	{"UDP length beyond the payload", packetIPv6(64, set(58, 0, 73)), ReasonBadLength},
	{"UDP length short of its header", packetIPv6(64, set(58, 0, 7)), ReasonBadLength},
	{"UDP length zero", packetIPv6(64, set(58, 0, 0)), ReasonBadLength},
	{"version 4 in IPv6", packetIPv6(64, set(14, 0x45)), ReasonBadVersion},
	{"IPv6 that says it is IPv4", packetIPv6(64, set(12, 0x08, 0x00)), ReasonBadVersion},
	{"VLAN", packetIPv6(64, insert(12, tagVLAN...)), ReasonVLAN},
}

// TestSteerIPv6 runs crafted IPv6 packets through the program in the kernel.
func TestSteerIPv6(t *testing.T) {
	program := loadTest(t, true)
	for _, test := range steerIPv6Cases {
		t.Run(test.name, func(t *testing.T) { checkSteer(t, program, test.packet, test.want) })
	}
}
