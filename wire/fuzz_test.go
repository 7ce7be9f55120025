package wire_test

import (
	"bytes"
	"testing"

	"github.com/stillwater-rpc/stillwater/wire"
)

// fuzzMessage checks one type: what is accepted is written with the length it announces, and reads the same again.
func fuzzMessage(f *testing.F, typ wire.Type) {
	for _, c := range golden {
		if c.t == typ {
			f.Add(unhex(f, c.hex))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := parsers[typ](tight(raw))
		if err != nil {
			return
		}
		written := m.Append(dirty(0, 64))
		if len(written) != m.Length() || len(written) > len(raw) {
			t.Fatalf("%d bytes were written again as %d, Length says %d", len(raw), len(written), m.Length())
		}
		again, err := parsers[typ](written)
		if err != nil || !same(again, m) {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

func FuzzRequest(f *testing.F)      { fuzzMessage(f, wire.TypeRequest) }
func FuzzRegister(f *testing.F)     { fuzzMessage(f, wire.TypeRegister) }
func FuzzRegistered(f *testing.F)   { fuzzMessage(f, wire.TypeRegistered) }
func FuzzReply(f *testing.F)        { fuzzMessage(f, wire.TypeReply) }
func FuzzReject(f *testing.F)       { fuzzMessage(f, wire.TypeReject) }
func FuzzBusy(f *testing.F)         { fuzzMessage(f, wire.TypeBusy) }
func FuzzCreditUpdate(f *testing.F) { fuzzMessage(f, wire.TypeCreditUpdate) }
func FuzzProbe(f *testing.F)        { fuzzMessage(f, wire.TypeProbe) }
func FuzzDeregister(f *testing.F)   { fuzzMessage(f, wire.TypeDeregister) }
func FuzzCancel(f *testing.F)       { fuzzMessage(f, wire.TypeCancel) }
func FuzzOpen(f *testing.F)         { fuzzMessage(f, wire.TypeOpen) }
func FuzzAccept(f *testing.F)       { fuzzMessage(f, wire.TypeAccept) }
func FuzzRetry(f *testing.F)        { fuzzMessage(f, wire.TypeRetry) }
func FuzzGone(f *testing.F)         { fuzzMessage(f, wire.TypeGone) }

// FuzzPacket walks through whatever parses and writes it again.
func FuzzPacket(f *testing.F) {
	f.Add(unhex(f, goldenPacket))
	f.Add(buildPacket(nil, 200))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := wire.ParsePacket(tight(raw))
		if err != nil {
			return
		}
		walk(t, p.Messages)
		b := append(wire.BeginPacket(dirty(0, 64)), p.Messages...)
		again, err := wire.ParsePacket(wire.FinishPacket(b, p.Header, len(raw)))
		if err != nil || again.Header != p.Header || !bytes.Equal(again.Messages, p.Messages) {
			t.Fatalf("%+v came back as %+v, %v", p, again, err)
		}
	})
}

// FuzzUDPv4 encodes whatever parses (options and Ethernet padding are not kept).
func FuzzUDPv4(f *testing.F) {
	f.Add(unhex(f, goldenFrame))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := wire.ParseUDPv4(tight(raw))
		if err != nil {
			return
		}
		if again, err := wire.ParseUDPv4(encode(d)); err != nil || !same(again, d) {
			t.Fatalf("%+v came back as %+v, %v", d, again, err)
		}
	})
}

// FuzzUDPv6 encodes whatever parses (traffic class, flow label, hop limit and Ethernet padding are not kept), and compares the
// verdict on its checksum with the slow twin's.
func FuzzUDPv6(f *testing.F) {
	f.Add(unhex(f, goldenFrameIPv6))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := wire.ParseUDPv6(tight(raw))
		if err == wire.ErrChecksum && slowChecksumIPv6(raw) == 0 && raw[60]|raw[61] != 0 {
			t.Fatalf("the slow twin finds the checksum of %x right", raw)
		}
		if err != nil {
			return
		}
		if slowChecksumIPv6(raw) != 0 {
			t.Fatalf("the slow twin finds the checksum of %x wrong", raw)
		}
		if again, err := wire.ParseUDPv6(encodeIPv6(d)); err != nil || !same(again, d) {
			t.Fatalf("%+v came back as %+v, %v", d, again, err)
		}
	})
}

// FuzzDatagram takes frames of either family: the addresses that come out are of the family that went in.
func FuzzDatagram(f *testing.F) {
	f.Add(unhex(f, goldenFrame))
	f.Add(unhex(f, goldenFrameIPv6))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := wire.ParseDatagram(tight(raw))
		if err != nil {
			return
		}
		four := raw[12] == 0x08
		if d.Source.IsIPv4() != four || d.Destination.IsIPv4() != four {
			t.Fatalf("EtherType %x: %v to %v", raw[12:14], d.Source, d.Destination)
		}
	})
}

// FuzzChecksum compares with the slow twin.
func FuzzChecksum(f *testing.F) {
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := wire.Checksum(b), slowChecksum(b); got != want {
			t.Fatalf("checksum is %#x, the slow twin says %#x", got, want)
		}
	})
}
