package capture

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/runtime/capture/pcapng"
	"github.com/stillwater-rpc/stillwater/wire"
)

// tshark has tshark read a capture with our dissector, and returns its lines. Without tshark it returns nil, and the log says what is left out.
func tshark(t *testing.T, path string, args ...string) []string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Logf("what Wireshark makes of the capture is left out: %v", err)
		return nil
	}
	command := exec.Command(program, append([]string{"-n", "-X", "lua_script:../../wire/stillwater.lua", "-r", path}, args...)...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir()) // nobody's preferences
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil || strings.Contains(log.String()+out.String(), "Lua Error") || strings.Contains(log.String(), "Lua:") {
		t.Fatalf("%v: %v\n%s", command.Args, err, log.String()+out.String())
	}
	return slices.Collect(strings.Lines(out.String()))
}

// written captures payloads that a port sends, into a file.
func written(t *testing.T, local wire.Addr, cfg Config, payloads ...[]byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.pcapng")
	tap, err := Create(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := tap.Wrap(&placed{fake{}, local})
	for _, payload := range payloads {
		p.Send(dispatcher.Buffer{Bytes: bytes.Clone(payload)}, there)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// placed is a port with an address of its own.
type placed struct {
	fake
	local wire.Addr
}

func (p *placed) LocalAddr() wire.Addr { return p.local }

// elsewhere is an address whose port says nothing.
var elsewhere = wire.Addr{IP: here.IP, Port: 4000}

// all is a packet with one of each message.
func all() []byte {
	token := wire.Token{0: 0xab, 31: 0xcd}
	b := wire.BeginPacket(make([]byte, 0, 1500))
	for _, m := range []interface{ Append([]byte) []byte }{
		&wire.Request{
			Retransmission: true, Session: 1, Number: 11, Next: 12, Method: wire.MethodOf("echo"), Seq: 13, Slot: 14, Demand: 15, HasBudget: true,
			Budget: 16 * time.Microsecond, Criticality: wire.Critical, Attempt: 2, Priority: 3, AttemptsLeft: 4, Metadata: []byte{0xee, 0xff}, Payload: []byte{0x99},
		},
		&wire.Request{Register: true, Number: 21, Method: wire.MethodOf("nobody knows it")},
		&wire.Registered{ServerSession: 31, Slots: 32, TargetDelay: 33 * time.Microsecond, DropThreshold: 34 * time.Microsecond},
		&wire.Reply{Number: 41, Limit: 1<<64 - 1, Status: wire.StatusPanic, Level: 45, PacketQueue: 42, RequestQueue: 43, Service: 44},
		&wire.Reject{Number: 51, Limit: 52, Reason: wire.RejectDraining, Advice: wire.AdviceDoNotRetry, Level: 53, RetryAfter: 540 * time.Microsecond},
		&wire.Busy{Number: 61, Slot: 62},
		&wire.CreditUpdate{Limit: 71, Seq: 72},
		&wire.Probe{Next: 81, Demand: 82},
		&wire.Deregister{Next: 91},
		&wire.Cancel{Number: 101},
		&wire.Open{Connection: 0x111, HasToken: true, Token: token},
		&wire.Accept{Connection: 0x121, Token: token},
		&wire.Retry{Token: token},
		&wire.Gone{Connection: 0x141, Session: 142},
	} {
		b = m.Append(b)
	}
	b = append(b, 99, 0, 0, 9, 0, 0, 0, 0, 0xaa) // a type that nobody knows
	return wire.FinishPacket(b, wire.Header{Flags: wire.PacketHandshake, Number: 1<<63 + 1, Stamp: 151, Echo: 152}, 900)
}

// TestDissector has tshark take apart a packet with one of each message, on our port and, by its form, on another.
func TestDissector(t *testing.T) {
	fields := [][2]string{
		{"frame.packet_flags_direction", "0x00000002"}, {"udp.dstport", "999"}, {"ip.checksum.status", "1"}, {"udp.checksum.status", "1"},
		{"stillwater.version", "1"}, {"stillwater.flags.handshake", "1"}, {"stillwater.packet_number", "9223372036854775809"},
		{"stillwater.stamp", "151"}, {"stillwater.echo", "152"}, {"stillwater.type", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,99"},
		{"stillwater.number", "11,21,41,51,61,101"}, {"stillwater.next", "12,0,81,91"}, {"stillwater.limit", "18446744073709551615,52,71"},
		{"stillwater.method_name", "echo"}, {"stillwater.slot", "14,0,0,0,62,0"}, {"stillwater.demand", "15,0,82"},
		{"stillwater.message_flags.retransmission", "1,0"}, {"stillwater.budget_us", "16"}, {"stillwater.criticality", "3"}, {"stillwater.attempt", "2"}, {"stillwater.priority", "3"}, {"stillwater.attempts_left", "4"},
		{"stillwater.level", "45,53"}, {"stillwater.retry_after_10us", "54"},
		{"stillwater.metadata", "eeff"}, {"stillwater.payload", "99"}, {"stillwater.server_session", "0x0000001f"}, {"stillwater.slots", "32"},
		{"stillwater.target_delay_us", "33"}, {"stillwater.drop_threshold_us", "34"}, {"stillwater.status", "2"}, {"stillwater.packet_queue_ns", "42"},
		{"stillwater.request_queue_ns", "43"}, {"stillwater.service_ns", "44"}, {"stillwater.reason", "5"}, {"stillwater.advice", "1"},
		{"stillwater.connection", "0x0000000000000111,0x0000000000000121,0x0000000000000141"}, {"stillwater.malformed", ""}, {"stillwater.cut", ""},
		{"stillwater.tag", strings.Repeat("00", 16)},
	}
	args := []string{"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields"}
	want := make([]string, len(fields))
	for i, f := range fields {
		args, want[i] = append(args, "-e", f[0]), f[1]
	}
	for _, local := range []wire.Addr{here, elsewhere} {
		path := written(t, local, Config{}, all())
		lines := tshark(t, path, args...)
		if lines == nil {
			return
		}
		got := strings.Split(strings.TrimSuffix(lines[0], "\n"), "\t")
		if len(lines) != 1 || len(got) != len(want) {
			t.Fatalf("%q", lines)
		}
		for i, f := range fields {
			if got[i] != want[i] {
				t.Errorf("from port %d: %s is %q, want %q", local.Port, f[0], got[i], want[i])
			}
		}
		info := strings.Join(tshark(t, path), "")
		for _, words := range []string{
			"packet 9223372036854775809: request #11 echo again, register #21, registered, reply #41 limit 18446744073709551615 panic",
			"reject #51 limit 52 draining", "gone, unknown message 99",
		} {
			if !strings.Contains(info, words) {
				t.Errorf("the line %s has no %q", info, words)
			}
		}
	}
}

// TestDissectorOfDamage cuts and damages packets in every place: the dissector says what is missing, and never fails itself.
func TestDissectorOfDamage(t *testing.T) {
	random := seedtest.Rand(t)
	var damaged [][]byte
	for range 300 {
		b := all()
		for range 1 + random.IntN(5) {
			b[2+random.IntN(len(b)-2)] = byte(random.Uint32())
		}
		damaged = append(damaged, b[:random.IntN(len(b)+1)])
	}
	lines := tshark(t, written(t, here, Config{}, damaged...), "-V")
	if lines == nil {
		return
	}
	if text := strings.Join(lines, ""); !strings.Contains(text, "Malformed") || !strings.Contains(text, "Unknown message") {
		t.Error("300 damaged packets, and nothing is wrong with them")
	}
	whole := all()
	for _, snap := range []int{SnapBytesMin, 55, 56, 60, 63, 64, 71, 99, 333, 27 + len(whole)} { // of 28 bytes of headers and 28 of ours
		path := written(t, elsewhere, Config{SnapBytes: snap}, whole)
		got := tshark(t, path, "-Y", "stillwater.cut || !stillwater.tag", "-T", "fields", "-e", "stillwater.version")
		ours := snap >= 28+wire.HeaderBytes
		if len(got) != 1 || ours != (got[0] == "1\n") {
			t.Errorf("%d bytes kept: %q", snap, got)
		}
	}
}

// TestDissectorOfOthers shows packets that are not ours, and sealed ones.
func TestDissectorOfOthers(t *testing.T) {
	random := seedtest.Rand(t)
	var strangers [][]byte
	for range 300 {
		b := make([]byte, random.IntN(200))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		if len(b) > 3 { // as near to ours as chance has it
			b[0], b[1], b[2], b[3] = 0x10, 0, 0, byte(len(b)/2)
		}
		strangers = append(strangers, b)
	}
	strangers = append(strangers, wire.FinishPacket(wire.BeginPacket(make([]byte, 0, 99)), wire.Header{}, 0))
	taken := tshark(t, written(t, elsewhere, Config{}, strangers...), "-Y", "stillwater", "-T", "fields", "-e", "udp.payload")
	if len(taken) > 1 { // eight bytes of chance can be a message
		t.Errorf("%d packets of others were taken for ours: %q", len(taken), taken)
	}
	sealed := all()
	sealed[1] = byte(wire.PacketSealed | wire.PacketKeyPhase)
	for i := range sealed[20:] {
		sealed[20+i] = byte(random.Uint32())
	}
	got := tshark(t, written(t, elsewhere, Config{}, sealed), "-T", "fields", "-e", "stillwater.flags", "-e", "stillwater.type", "-e", "stillwater.ciphertext")
	if want := fmt.Sprintf("0x03\t\t%x\n", sealed[20:]); got != nil && (len(got) != 1 || got[0] != want) {
		t.Errorf("sealed: %q, want %q", got, want)
	}
}

// TestDissectorShowsDrops has what is lost show in Wireshark's own fields.
func TestDissectorShowsDrops(t *testing.T) {
	p, path := onFile(t, Config{})
	p.gap = gap{missed: 3, lost: 4}
	p.begin(0, &here, &there, all(), true)
	p.end(pcapng.Outbound, true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	got := tshark(t, path, "-T", "fields", "-e", "frame.drop_count", "-e", "frame.comment", "-e", "frame.interface_name")
	want := "7\tdropped: the port refused to send it. Before it: not captured, since the ring was full: 3. Before it: lost at reception: 4.\tfake\n"
	if got != nil && (len(got) != 1 || got[0] != want) {
		t.Errorf("%q, want %q", got, want)
	}
}
