//go:build linux

package bpf

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The XDP verdicts of include/uapi/linux/bpf.h, enum xdp_action.
const (
	xdpPass     = 2
	xdpRedirect = 4
)

var tagVLAN = []byte{0x81, 0x00, 0x00, 0x05}

var steerCases = []struct {
	name   string
	packet []byte
	want   Reason
}{
	{"ours", packet(64), ReasonRedirected},
	{"ours, empty", packet(0), ReasonRedirected},
	{"ours, padded by Ethernet", append(packet(4), make([]byte, 14)...), ReasonRedirected},
	{"ours, don't fragment", packet(64, set(20, 0x40, 0)), ReasonRedirected},
	{"ours, longest", packet(packetSizeMaxDefault - 42), ReasonRedirected},
	{"ours, one too long", packet(packetSizeMaxDefault - 41), ReasonTooLong},
	{"jumbo", packet(3000), ReasonTooLong},
	{"wrong port", packet(64, set(36, 0x12, 0x68)), ReasonNoService},
	{"port as source", packet(64, set(34, 0x12, 0x67, 0, 9)), ReasonNoService},
	{"wrong address", packet(64, set(33, 3)), ReasonNoService},
	{"broadcast", packet(64, set(30, 255, 255, 255, 255)), ReasonNoService},
	{"TCP", packet(64, set(23, unix.IPPROTO_TCP)), ReasonNotUDP},
	{"ICMP", packet(64, set(23, unix.IPPROTO_ICMP)), ReasonNotUDP},
	{"VLAN", packet(64, insert(12, tagVLAN...)), ReasonVLAN},
	{"QinQ", packet(64, insert(12, append([]byte{0x88, 0xa8, 0, 1}, tagVLAN...)...)), ReasonVLAN},
	{"old QinQ", packet(64, insert(12, append([]byte{0x91, 0x00, 0, 1}, tagVLAN...)...)), ReasonVLAN},
	{"IP options", packet(64, set(14, 0x46), insert(34, 1, 1, 1, 0)), ReasonIPOptions},
	{"ihl too small", packet(64, set(14, 0x44)), ReasonIPOptions},
	{"ihl zero", packet(64, set(14, 0x40)), ReasonIPOptions},
	{"version 6 in IPv4", packet(64, set(14, 0x65)), ReasonBadVersion},
	{"first fragment", packet(64, set(20, 0x20, 0)), ReasonFragment},
	{"middle fragment", packet(64, set(20, 0x20, 8)), ReasonFragment},
	{"last fragment", packet(64, set(20, 0x00, 8)), ReasonFragment},
	{"far fragment", packet(64, set(20, 0x1f, 0xff)), ReasonFragment},
	{"IP length beyond the packet", packet(64, set(16, 0, 93)), ReasonBadLength},
	{"IP length short of the headers", packet(64, set(16, 0, 27)), ReasonBadLength},
	{"UDP length beyond the IP length", packet(64, set(38, 0, 73)), ReasonBadLength},
	{"UDP length short of its header", packet(64, set(38, 0, 7)), ReasonBadLength},
	{"UDP length zero", packet(64, set(38, 0, 0)), ReasonBadLength},
	{"IPv4 that says it is IPv6", packet(64, set(12, 0x86, 0xdd)), ReasonBadVersion},
	{"ARP", packet(64, set(12, 0x08, 0x06)), ReasonNotIP},
	{"EtherType zero", packet(64, set(12, 0, 0)), ReasonNotIP},
}

// TestSteer runs crafted packets through the program in the kernel: verdict, counter, and bytes.
func TestSteer(t *testing.T) {
	program := loadTest(t, true)
	for _, test := range steerCases {
		t.Run(test.name, func(t *testing.T) { checkSteer(t, program, test.packet, test.want) })
	}
}

func checkSteer(t *testing.T, program *Program, packet []byte, want Reason) {
	t.Helper()
	sent := slices.Clone(packet)
	start := monotonic(t)
	reason, verdict, out := steered(t, program, ebpf.RunOptions{Data: packet})
	end := monotonic(t)
	if reason != want {
		t.Errorf("reason %v, want %v", reason, want)
	}
	wantVerdict := uint32(xdpPass)
	if want.Redirected() {
		wantVerdict = xdpRedirect
	}
	if verdict != wantVerdict {
		t.Errorf("verdict %d, want %d", verdict, wantVerdict)
	}
	if want == ReasonRedirected {
		// The kernel hands metadata and packet back as one (net/bpf/test_run.c).
		if len(out) < 8 {
			t.Fatalf("only %d bytes came back", len(out))
		}
		stamp := binary.NativeEndian.Uint64(out)
		if stamp < start || stamp > end {
			t.Errorf("stamp %d is not within [%d, %d]", stamp, start, end)
		}
		out = out[8:]
	}
	if !bytes.Equal(out, sent) {
		t.Errorf("packet changed:\n got %x\nwant %x", out, sent)
	}
}

func monotonic(t *testing.T) uint64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return uint64(now.Nano())
}

// TestSteerEveryPrefix cuts a valid packet of each family at every byte: none is redirected, and each is left as it was.
func TestSteerEveryPrefix(t *testing.T) {
	program := loadTest(t, true)
	for headers, whole := range map[int][]byte{42: packet(22), 62: packetIPv6(22)} {
		for size := 14; size < len(whole); size++ { // the kernel runs nothing shorter than an Ethernet header
			want := ReasonBadLength
			if size < headers {
				want = ReasonShort
			}
			checkSteer(t, program, whole[:size], want)
		}
		checkSteer(t, program, whole, ReasonRedirected)
	}
}

// TestSteerFallsToTheKernel covers what depends on the maps: no socket, and no service.
func TestSteerFallsToTheKernel(t *testing.T) {
	program := loadTest(t, false)
	checkSteer(t, program, packet(64), ReasonNoSocket)
	checkSteer(t, program, packetIPv6(64), ReasonNoSocket)

	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := program.SetSocket(0, fd); err != nil {
		t.Fatal(err)
	}
	checkSteer(t, program, packet(64), ReasonRedirected)
	if err := program.ClearSocket(0); err != nil {
		t.Fatal(err)
	}
	checkSteer(t, program, packet(64), ReasonNoSocket)
	if err := program.UnregisterService(testService, testPort); err != nil {
		t.Fatal(err)
	}
	checkSteer(t, program, packet(64), ReasonNoService)
	checkSteer(t, program, packetIPv6(64), ReasonNoSocket) // a service of its own
	if err := program.UnregisterService(testIPv6, testPort); err != nil {
		t.Fatal(err)
	}
	checkSteer(t, program, packetIPv6(64), ReasonNoService)
}

// TestSteerToItsQueuesOnly: a service may be one of queues that the packet did not come in on, which is 0 here.
func TestSteerToItsQueuesOnly(t *testing.T) {
	program := loadTest(t, true)
	for on, want := range map[Queues]Reason{
		{}: ReasonRedirected, {0, 1}: ReasonRedirected, {0, serviceQueueMax}: ReasonRedirected,
		{1, 1}: ReasonOtherQueue, {1, serviceQueueMax}: ReasonOtherQueue, {serviceQueueMax, serviceQueueMax}: ReasonOtherQueue,
	} {
		if err := program.RegisterServiceOn(testService, testPort, on); err != nil {
			t.Fatal(err)
		}
		checkSteer(t, program, packet(64), want)
		checkSteer(t, program, packetIPv6(64), ReasonRedirected) // a service of its own
	}
	for _, on := range []Queues{{serviceQueueMax + 1, 1}, {0, serviceQueueMax + 1}} {
		if err := program.RegisterServiceOn(testService, testPort, on); err == nil {
			t.Errorf("%+v was taken", on)
		}
	}
}

// TestSteerWithoutMetadata fills the metadata up beforehand, so that the program's own stamp has no room.
func TestSteerWithoutMetadata(t *testing.T) {
	program := loadTest(t, true)
	// Of XDP's headroom of 256 bytes the last 40 are the kernel's own (struct xdp_frame), so that 4 are left here.
	const metadataSize = 212
	data := append(make([]byte, metadataSize), packet(600)...)
	context := struct{ Data, DataEnd, DataMeta, Ifindex, Queue, Egress uint32 }{
		Data: metadataSize, DataEnd: uint32(len(data)),
	}
	reason, verdict, out := steered(t, program, ebpf.RunOptions{Data: slices.Clone(data), Context: &context})
	if reason != ReasonRedirectedUnstamped || verdict != xdpRedirect {
		t.Errorf("reason %v, verdict %d", reason, verdict)
	}
	if !bytes.Equal(out, data) {
		t.Error("packet changed")
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for i := range reasonCount {
		name := Reason(i).String()
		if name == "" || seen[name] {
			t.Errorf("reason %d has the name %q, empty or taken", i, name)
		}
		seen[name] = true
	}
}

func BenchmarkSteer(b *testing.B) {
	for name, in := range map[string][]byte{"ipv4": packet(64), "ipv6": packetIPv6(64)} {
		b.Run(name, func(b *testing.B) {
			program := loadTest(b, true)
			b.ResetTimer()
			opts := ebpf.RunOptions{Data: in, Repeat: uint32(b.N)}
			if _, err := program.objects.StillwaterXdp.Run(&opts); err != nil {
				b.Fatal(err)
			}
		})
	}
}
