package wire_test

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/wire"
)

// sink keeps results alive, so that the compiler does not remove the work.
var sink struct {
	request  wire.Request
	reply    wire.Reply
	datagram wire.Datagram
	packet   wire.Packet
	checksum uint16
	frame    []byte
}

// TestNoAllocation takes a request and its reply through everything that a packet meets.
func TestNoAllocation(t *testing.T) {
	frame := dirty(2048, 2048)
	payload := make([]byte, 64)
	request := wire.Request{HasBudget: true, Budget: 100, Attempt: 1, Metadata: payload[:8], Payload: payload}
	reply := wire.Reply{Payload: payload}
	d := goldenDatagram()
	if n := testing.AllocsPerRun(100, func() {
		b := wire.BeginPacket(frame[wire.FrameHeaderBytes:])
		b = request.Append(b)
		b = reply.Append(b)
		b = wire.FinishPacket(b, header, 600)
		sink.frame = frame[:wire.FrameHeaderBytes+len(b)]
		wire.EncodeUDPv4(sink.frame, &d)
		sink.datagram, _ = wire.ParseUDPv4(sink.frame)
		sink.packet, _ = wire.ParsePacket(sink.datagram.Payload)
		m, rest, _ := wire.NextMessage(sink.packet.Messages)
		sink.request, _ = wire.ParseRequest(m.Raw)
		m, _, _ = wire.NextMessage(rest)
		sink.reply, _ = wire.ParseReply(m.Raw)
	}); n != 0 {
		t.Errorf("a packet costs %v allocations", n)
	}
	if string(sink.request.Metadata) != string(request.Metadata) || len(sink.reply.Payload) != 64 {
		t.Errorf("the packet did not come through: %+v, %+v", sink.request, sink.reply)
	}
}

// TestNoAllocationIPv6 is the part of it that differs over IPv6.
func TestNoAllocationIPv6(t *testing.T) {
	d := goldenDatagramIPv6()
	frame := encodeIPv6(d)
	broken := append([]byte(nil), frame...)
	broken[len(broken)-1] ^= 1
	if n := testing.AllocsPerRun(100, func() {
		wire.EncodeUDPv6(frame, &d)
		sink.datagram, _ = wire.ParseDatagram(broken)
		sink.datagram, _ = wire.ParseDatagram(frame)
	}); n != 0 {
		t.Errorf("a packet costs %v allocations", n)
	}
	if !same(sink.datagram, d) {
		t.Errorf("the packet did not come through: %+v", sink.datagram)
	}
}

// TestNoAllocationOfAnyMessage covers the messages that the other test leaves out, and the errors.
func TestNoAllocationOfAnyMessage(t *testing.T) {
	buffer := dirty(0, 2048)
	for _, c := range golden {
		if n := testing.AllocsPerRun(100, func() { buffer = c.message.Append(buffer[:0]) }); n != 0 {
			t.Errorf("%s: Append costs %v allocations", c.name, n)
		}
	}
	raw := map[wire.Type][]byte{}
	for _, c := range golden {
		raw[c.t] = unhex(t, c.hex)
	}
	var failed int
	check := func(err error) {
		if err != nil {
			failed++
		}
	}
	parseAll := func() {
		_, err := wire.ParseRegistered(raw[wire.TypeRegistered])
		check(err)
		_, err = wire.ParseReject(raw[wire.TypeReject])
		check(err)
		_, err = wire.ParseBusy(raw[wire.TypeBusy])
		check(err)
		_, err = wire.ParseCreditUpdate(raw[wire.TypeCreditUpdate])
		check(err)
		_, err = wire.ParseProbe(raw[wire.TypeProbe])
		check(err)
		_, err = wire.ParseDeregister(raw[wire.TypeDeregister])
		check(err)
		_, err = wire.ParseCancel(raw[wire.TypeCancel])
		check(err)
		_, err = wire.ParseOpen(raw[wire.TypeOpen])
		check(err)
		_, err = wire.ParseAccept(raw[wire.TypeAccept])
		check(err)
		_, err = wire.ParseRetry(raw[wire.TypeRetry])
		check(err)
		_, err = wire.ParseGone(raw[wire.TypeGone])
		check(err)
	}
	if n := testing.AllocsPerRun(100, parseAll); n != 0 || failed != 0 {
		t.Errorf("parsing all types costs %v allocations, %d failed", n, failed)
	}
	for typ := range raw {
		raw[typ] = raw[typ][:len(raw[typ])-1]
	}
	if n := testing.AllocsPerRun(100, parseAll); n != 0 || failed == 0 {
		t.Errorf("refusing all types costs %v allocations, %d failed", n, failed)
	}
}

func BenchmarkRequestAppend(b *testing.B) {
	request := wire.Request{Number: 1, Next: 2, Payload: make([]byte, 64)}
	buffer := make([]byte, 0, 2048)
	for b.Loop() {
		buffer = request.Append(buffer[:0])
	}
}

func BenchmarkRequestParse(b *testing.B) {
	raw := (&wire.Request{Number: 1, Next: 2, Payload: make([]byte, 64)}).Append(nil)
	for b.Loop() {
		sink.request, _ = wire.ParseRequest(raw)
	}
}

func BenchmarkReplyAppend(b *testing.B) {
	reply := wire.Reply{Number: 1, Limit: 2, Payload: make([]byte, 64)}
	buffer := make([]byte, 0, 2048)
	for b.Loop() {
		buffer = reply.Append(buffer[:0])
	}
}

func BenchmarkReplyParse(b *testing.B) {
	raw := (&wire.Reply{Number: 1, Limit: 2, Payload: make([]byte, 64)}).Append(nil)
	for b.Loop() {
		sink.reply, _ = wire.ParseReply(raw)
	}
}

func BenchmarkPacket(b *testing.B) {
	buffer := make([]byte, 0, 2048)
	for b.Loop() {
		p := wire.FinishPacket(wire.BeginPacket(buffer), header, 0)
		sink.packet, _ = wire.ParsePacket(p)
	}
}

func BenchmarkUDPv4(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"64", 64}, {"1472", 1472}} {
		d := goldenDatagram()
		d.Payload = make([]byte, c.size)
		frame := encode(d)
		b.Run("encode/"+c.name, func(b *testing.B) {
			for b.Loop() {
				wire.EncodeUDPv4(frame, &d)
			}
		})
		b.Run("parse/"+c.name, func(b *testing.B) {
			for b.Loop() {
				sink.datagram, _ = wire.ParseUDPv4(frame)
			}
		})
		b.Run("checksum/"+c.name, func(b *testing.B) {
			for b.Loop() {
				sink.checksum = wire.Checksum(d.Payload)
			}
		})
	}
}

// BenchmarkUDPv6 is beside BenchmarkUDPv4: 24 bytes more are summed. Its parse goes by the EtherType, as a port's does.
func BenchmarkUDPv6(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"64", 64}, {"1452", 1452}} {
		d := goldenDatagramIPv6()
		d.Payload = make([]byte, c.size)
		frame := encodeIPv6(d)
		b.Run("encode/"+c.name, func(b *testing.B) {
			for b.Loop() {
				wire.EncodeUDPv6(frame, &d)
			}
		})
		b.Run("parse/"+c.name, func(b *testing.B) {
			for b.Loop() {
				sink.datagram, _ = wire.ParseDatagram(frame)
			}
		})
	}
}
