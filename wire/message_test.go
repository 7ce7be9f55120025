package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/wire"
)

// message is what all messages have in common.
type message interface {
	Length() int
	Append(b []byte) []byte
}

// parserOf gives a parser the shape that the tables need.
func parserOf[M any, P interface {
	*M
	message
}](parse func([]byte) (M, error)) func([]byte) (message, error) {
	return func(raw []byte) (message, error) {
		m, err := parse(raw)
		if err != nil {
			return nil, err
		}
		return P(&m), nil
	}
}

var parsers = map[wire.Type]func([]byte) (message, error){
	wire.TypeRequest:      parserOf(wire.ParseRequest),
	wire.TypeRegister:     parserOf(wire.ParseRequest),
	wire.TypeRegistered:   parserOf(wire.ParseRegistered),
	wire.TypeReply:        parserOf(wire.ParseReply),
	wire.TypeReject:       parserOf(wire.ParseReject),
	wire.TypeBusy:         parserOf(wire.ParseBusy),
	wire.TypeCreditUpdate: parserOf(wire.ParseCreditUpdate),
	wire.TypeProbe:        parserOf(wire.ParseProbe),
	wire.TypeDeregister:   parserOf(wire.ParseDeregister),
	wire.TypeCancel:       parserOf(wire.ParseCancel),
	wire.TypeOpen:         parserOf(wire.ParseOpen),
	wire.TypeAccept:       parserOf(wire.ParseAccept),
	wire.TypeRetry:        parserOf(wire.ParseRetry),
	wire.TypeGone:         parserOf(wire.ParseGone),
}

// token is 00 01 02 ... 1f.
var token = func() (t wire.Token) {
	for i := range t {
		t[i] = byte(i)
	}
	return t
}()

const tokenHex = "0001020304050607 08090a0b0c0d0e0f 1011121314151617 18191a1b1c1d1e1f"

// TestCriticalityLevel: what is not said, or not known, counts as critical.
func TestCriticalityLevel(t *testing.T) {
	for code := range 256 {
		c := wire.Criticality(code)
		want := c
		if code == 0 || code > 4 {
			want = wire.Critical
		}
		if got := c.Level(); got != want {
			t.Errorf("%d counts as %d", code, got)
		}
	}
}

// golden are the bytes of ARCHITECTURE.md, section 2, written out by hand.
var golden = []struct {
	name    string
	t       wire.Type
	message message
	hex     string
}{
	{"request, bare", wire.TypeRequest, &wire.Request{
		Session: 0x01020304, Number: 5, Next: 6, Method: 0x1122334455667788, Seq: 7, Slot: 8, Demand: 9,
	}, "01 00 0028 01020304 0000000000000005 0000000000000006 1122334455667788 00000007 0008 0009"},
	{"request, everything", wire.TypeRequest, &wire.Request{
		Retransmission: true, Unasked: true, Session: 1, Number: 2, Next: 3, Method: 4, Seq: 5, Slot: 6, Demand: 7,
		HasBudget: true, Budget: 258 * time.Microsecond, Criticality: wire.Critical, Attempt: 2, Priority: 128, AttemptsLeft: 3,
		Metadata: []byte("abc"), Payload: []byte("hello"),
	}, "01 8f 003a 00000001 0000000000000002 0000000000000003 0000000000000004 00000005 0006 0007" +
		"00000102 03 02 80 03 0003 616263 68656c6c6f"},
	{"request, a priority alone", wire.TypeRequest, &wire.Request{Priority: 1},
		"01 02 002c 00000000 0000000000000000 0000000000000000 0000000000000000 00000000 0000 0000 00 00 01 00"},
	{"request, attempts left alone", wire.TypeRequest, &wire.Request{AttemptsLeft: 1},
		"01 02 002c 00000000 0000000000000000 0000000000000000 0000000000000000 00000000 0000 0000 00 00 00 01"},
	{"request, no budget left", wire.TypeRequest, &wire.Request{HasBudget: true, Payload: []byte{0xff}},
		"01 01 002d 00000000 0000000000000000 0000000000000000 0000000000000000 00000000 0000 0000 00000000 ff"},
	{"register", wire.TypeRegister, &wire.Request{Register: true, Session: 0xa, Next: 1, Payload: []byte{1, 2}},
		"02 00 002a 0000000a 0000000000000000 0000000000000001 0000000000000000 00000000 0000 0000 0102"},
	{"registered", wire.TypeRegistered, &wire.Registered{
		Session: 1, ServerSession: 2, Slots: 256, TargetDelay: 80 * time.Microsecond, DropThreshold: 160 * time.Microsecond,
	}, "03 00 0018 00000001 00000002 0100 0000 00000050 000000a0"},
	{"reply", wire.TypeReply, &wire.Reply{
		Session: 1, Number: 2, Limit: 3, Seq: 4, Slot: 5, Status: wire.StatusHandlerError, Level: 127,
		PacketQueue: 6, RequestQueue: 7, Service: 65536, Payload: []byte("no"),
	}, "04 00 002e 00000001 0000000000000002 0000000000000003 00000004 0005 01 7f 00000006 00000007 00010000 6e6f"},
	{"reject", wire.TypeReject, &wire.Reject{
		Session: 1, Number: 2, Limit: 3, Seq: 4, Slot: 5, Reason: wire.RejectDraining, Advice: wire.AdviceDoNotRetry,
		Level: 32, RetryAfter: 2580 * time.Microsecond,
	}, "05 00 0024 00000001 0000000000000002 0000000000000003 00000004 0005 05 01 20 00 0102"},
	{"busy", wire.TypeBusy, &wire.Busy{Session: 1, Number: 2, Slot: 3}, "06 00 0014 00000001 0000000000000002 0003 0000"},
	{"credit update", wire.TypeCreditUpdate, &wire.CreditUpdate{Session: 1, Limit: 2, Seq: 3},
		"07 00 0014 00000001 0000000000000002 00000003"},
	{"probe", wire.TypeProbe, &wire.Probe{Session: 1, Next: 2, Seq: 3, Demand: 4},
		"08 00 0018 00000001 0000000000000002 00000003 0004 0000"},
	{"deregister", wire.TypeDeregister, &wire.Deregister{Session: 1, Next: 2, Seq: 3},
		"09 00 0014 00000001 0000000000000002 00000003"},
	{"cancel", wire.TypeCancel, &wire.Cancel{Session: 1, Number: 2, Slot: 3},
		"0a 00 0014 00000001 0000000000000002 0003 0000"},
	{"open", wire.TypeOpen, &wire.Open{Connection: 0x0102030405060708}, "0b 00 0010 00000000 0102030405060708"},
	{"open, token", wire.TypeOpen, &wire.Open{Connection: 1, HasToken: true, Token: token},
		"0b 01 0030 00000000 0000000000000001" + tokenHex},
	{"accept", wire.TypeAccept, &wire.Accept{Connection: 2, Token: token},
		"0c 00 0030 00000000 0000000000000002" + tokenHex},
	{"retry", wire.TypeRetry, &wire.Retry{Token: token}, "0d 00 0028 00000000" + tokenHex},
	{"gone", wire.TypeGone, &wire.Gone{Connection: 3}, "0e 00 0010 00000000 0000000000000003"},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tight copies b so that its capacity is its length: reading beyond panics.
func tight(b []byte) []byte { return append(make([]byte, 0, len(b)), b...)[:len(b):len(b)] }

// dirty is a buffer of old data, as every frame is.
func dirty(length, capacity int) []byte { return bytes.Repeat([]byte{0xa5}, capacity)[:length] }

// same compares parsed values; nil and empty slices are the same.
func same(a, b any) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }

func TestMessagesMatchTheByteMap(t *testing.T) {
	for _, c := range golden {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.hex)
			if c.message.Length() != len(want) {
				t.Errorf("Length is %d, want %d", c.message.Length(), len(want))
			}
			if got := c.message.Append(dirty(3, 200))[3:]; !bytes.Equal(got, want) {
				t.Errorf("Append wrote\n%x, want\n%x", got, want)
			}
			if got := c.message.Append(nil); !bytes.Equal(got, want) {
				t.Errorf("Append to nil wrote\n%x, want\n%x", got, want)
			}
			m, rest, err := wire.NextMessage(append(want, 1, 2, 3))
			if err != nil || m.Type != c.t || len(m.Raw) != len(want) || !bytes.Equal(rest, []byte{1, 2, 3}) {
				t.Fatalf("NextMessage = %+v, rest %x, %v", m, rest, err)
			}
			got, err := parsers[c.t](tight(m.Raw))
			if err != nil || !same(got, c.message) {
				t.Errorf("parsed %+v, %v; want %+v", got, err, c.message)
			}
		})
	}
}

// TestMutilatedMessages cuts every message at every byte and flips every bit: no panic, and what is still accepted
// survives being written and read again.
func TestMutilatedMessages(t *testing.T) {
	for _, c := range golden {
		whole := unhex(t, c.hex)
		for cut := range whole {
			prefix := tight(whole[:cut])
			if _, _, err := wire.NextMessage(prefix); err == nil {
				t.Errorf("%s: NextMessage accepts the first %d bytes", c.name, cut)
			}
			for _, parse := range parsers {
				if _, err := parse(prefix); err == nil {
					t.Errorf("%s: the first %d bytes are accepted", c.name, cut)
				}
			}
		}
		for bit := range len(whole) * 8 {
			flipped := tight(whole)
			flipped[bit/8] ^= 1 << (bit % 8)
			for t2, parse := range parsers {
				m, err := parse(flipped)
				if err == nil {
					checkRoundTrip(t, t2, m)
				}
			}
			walk(t, flipped)
		}
	}
}

// walk takes the messages of b apart like a receiver.
func walk(t *testing.T, b []byte) {
	t.Helper()
	for len(b) > 0 {
		m, rest, err := wire.NextMessage(b)
		if err != nil {
			return
		}
		if len(m.Raw)+len(rest) != len(b) || cap(m.Raw) != len(m.Raw) {
			t.Fatalf("%d bytes fell apart into %d (capacity %d) and %d", len(b), len(m.Raw), cap(m.Raw), len(rest))
		}
		if parse := parsers[m.Type]; parse != nil {
			_, _ = parse(m.Raw) // only that it does not panic
		}
		b = rest
	}
}

func checkRoundTrip(t *testing.T, typ wire.Type, m message) {
	t.Helper()
	raw := m.Append(dirty(0, 300))
	if len(raw) != m.Length() {
		t.Errorf("%v: Append wrote %d bytes, Length says %d", typ, len(raw), m.Length())
	}
	again, err := parsers[typ](raw)
	if err != nil || !same(again, m) {
		t.Errorf("%v: %+v came back as %+v, %v", typ, m, again, err)
	}
}

func TestMessageErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		t    wire.Type
		hex  string
		want error
	}{
		{"another type", wire.TypeBusy, "0a 00 0014 00000001 0000000000000002 0003 0000", wire.ErrType},
		{"unknown flag", wire.TypeBusy, "06 01 0014 00000001 0000000000000002 0003 0000", wire.ErrFlags},
		{"length short of the bytes", wire.TypeBusy, "06 00 0013 00000001 0000000000000002 0003 0000", wire.ErrLength},
		{"longer than its type", wire.TypeBusy, "06 00 0015 00000001 0000000000000002 0003 0000 00", wire.ErrLength},
		{"unknown reason", wire.TypeReject, "05 00 0024 00000001 0000000000000002 0000000000000003 00000004 0005 0a 01 00 00 0000", wire.ErrStatus},
		{"no reason", wire.TypeReject, "05 00 0024 00000001 0000000000000002 0000000000000003 00000004 0005 00 01 00 00 0000", wire.ErrStatus},
		{"unknown status", wire.TypeReply, "04 00 002c 00000001 0000000000000002 0000000000000003 00000004 0005 05 00 00000006 00000007 00010000", wire.ErrStatus},
		{"token flag without a token", wire.TypeOpen, "0b 01 0010 00000000 0102030405060708", wire.ErrLength},
		{"token without its flag", wire.TypeOpen, "0b 00 0030 00000000 0000000000000001" + tokenHex, wire.ErrLength},
		{"budget cut off", wire.TypeRequest, "01 01 002b 00000000 0000000000000000 0000000000000000 0000000000000000 00000000 0000 0000 000000", wire.ErrShort},
		{"class cut off", wire.TypeRequest, "01 02 002b 00000000 0000000000000000 0000000000000000 0000000000000000 00000000 0000 0000 000000", wire.ErrShort},
		{"metadata length cut off", wire.TypeRequest, "01 04 0029 00000000 0000000000000000 0000000000000000 0000000000000000 00000000 0000 0000 00", wire.ErrShort},
		{"metadata longer than the message", wire.TypeRequest, "01 04 002b 00000000 0000000000000000 0000000000000000 0000000000000000 00000000 0000 0000 0002 00", wire.ErrLength},
	} {
		if _, err := parsers[c.t](tight(unhex(t, c.hex))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestUnknownTypeIsReturned(t *testing.T) {
	m, rest, err := wire.NextMessage(unhex(t, "c8 07 0009 00000005 ff 06"))
	if err != nil || m.Type != 200 || m.Flags != 7 || m.Session != 5 || len(m.Raw) != 9 || len(rest) != 1 {
		t.Errorf("NextMessage = %+v, %x, %v", m, rest, err)
	}
	if got := m.Type.String(); got != "unknown" {
		t.Errorf("type 200 is called %q", got)
	}
	if _, _, err := wire.NextMessage(unhex(t, "c8 00 0007 00000005")); !errors.Is(err, wire.ErrLength) {
		t.Errorf("a message shorter than its header: %v", err)
	}
}

func TestDurationsAreRoundedDownAndClamped(t *testing.T) {
	for _, c := range []struct{ in, want time.Duration }{
		{1999 * time.Nanosecond, time.Microsecond},
		{-time.Second, 0},
		{100 * time.Hour, (1<<32 - 1) * time.Microsecond},
	} {
		r, err := wire.ParseRequest((&wire.Request{HasBudget: true, Budget: c.in}).Append(nil))
		if err != nil || r.Budget != c.want {
			t.Errorf("budget %v came over as %v, %v; want %v", c.in, r.Budget, err, c.want)
		}
	}
	r, err := wire.ParseReply((&wire.Reply{Service: time.Minute}).Append(nil))
	if err != nil || r.Service != 1<<32-1 {
		t.Errorf("a service of a minute came over as %v, %v", r.Service, err)
	}
}

// TestMethodOf uses the published test vectors of FNV-1a (draft-eastlake-fnv, appendix C).
func TestMethodOf(t *testing.T) {
	for name, want := range map[string]wire.Method{
		"": 0xcbf29ce484222325, "a": 0xaf63dc4c8601ec8c, "foobar": 0x85944171f73967e8,
	} {
		if got := wire.MethodOf(name); got != want {
			t.Errorf("MethodOf(%q) = %#x, want %#x", name, got, want)
		}
	}
}

func TestCodesHaveNames(t *testing.T) {
	for code := range 30 {
		if got := wire.Type(code).String(); (got == "unknown") != (code == 0 || code > 18) {
			t.Errorf("type %d is called %q", code, got)
		}
		if got := wire.RejectReason(code).String(); (got == "unknown") != (code == 0 || code > 9) {
			t.Errorf("reason %d is called %q", code, got)
		}
		if got := wire.Status(code).String(); (got == "unknown") != (code > 4) {
			t.Errorf("status %d is called %q", code, got)
		}
	}
}

// TestRetryAfterFits writes what the field cannot say as the nearest that it can.
func TestRetryAfterFits(t *testing.T) {
	for _, c := range []struct{ said, heard time.Duration }{
		{0, 0}, {-time.Second, 0}, {9999, 0}, {10_001, 10 * time.Microsecond}, {655_350 * time.Microsecond, 655_350 * time.Microsecond},
		{time.Hour, 655_350 * time.Microsecond},
	} {
		m := wire.Reject{Reason: wire.RejectOverloaded, RetryAfter: c.said}
		if got, err := wire.ParseReject(m.Append(nil)); err != nil || got.RetryAfter != c.heard {
			t.Errorf("%v is heard as %v, %v; want %v", c.said, got.RetryAfter, err, c.heard)
		}
	}
}

// TestSmallAnswersAreSmall compares them with the smallest that each of them answers.
func TestSmallAnswersAreSmall(t *testing.T) {
	if wire.RejectBytes > wire.RequestBytes || wire.BusyBytes > wire.RequestBytes || wire.GoneBytes > wire.DeregisterBytes {
		t.Error("an answer is larger than what it answers")
	}
}

// TestReplyAgain sends a kept answer with today's limit and level, and nothing else changed.
func TestReplyAgain(t *testing.T) {
	m := wire.Reply{Session: 1, Number: 2, Limit: 3, Seq: 4, Slot: 5, Status: wire.StatusPanic, Level: 6, Service: 7, Payload: []byte("x")}
	raw := m.Append(nil)
	wire.SetReplyLimit(raw, 30, 40, 60)
	m.Limit, m.Seq, m.Level = 30, 40, 60
	if got, err := wire.ParseReply(raw); err != nil || !same(&got, &m) {
		t.Errorf("%+v, %v; want %+v", got, err, m)
	}
}
