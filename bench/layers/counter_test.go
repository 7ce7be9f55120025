//go:build linux

package main

import (
	"encoding/binary"
	"maps"
	"testing"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// sink is a port that takes packets.
type sink struct {
	dispatcher.Port
	sent    int
	refused uint64
}

func (s *sink) Send(dispatcher.Buffer, wire.Addr) { s.sent++ }
func (s *sink) SendRefused() uint64               { return s.refused }

type message interface{ Append([]byte) []byte }

func packet(messages ...message) []byte {
	b := wire.BeginPacket(nil)
	for _, m := range messages {
		b = m.Append(b)
	}
	return wire.FinishPacket(b, wire.Header{Connection: 1, Number: 1}, 0)
}

// ask is an attempt at a call for a user's request.
func ask(mark, call uint64, number uint8) *wire.Request {
	payload := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, mark), call)
	return &wire.Request{Session: 1, Number: 7, Method: wire.MethodOf(methodWork), Attempt: number, Payload: payload}
}

func TestCounterTellsAttemptsApart(t *testing.T) {
	again := ask(1, 1, 0)
	again.Retransmission = true
	registers := ask(2, 9, 0)
	registers.Register = true
	registered := ask(2, 9, 0)
	registered.Session, registered.Retransmission = 5, true
	other := ask(3, 4, 0)
	other.Number = 8
	c, under := newCounter(), &sink{refused: 3}
	port := c.wrap(under)
	packets := [][]byte{
		packet(ask(1, 1, 0), &wire.Probe{Session: 1}, ask(1, 2, 0)), // two calls for one request
		packet(again),
		packet(ask(1, 1, 1)), // its second attempt
		packet(registers),
		packet(registered), // the same, by another handle
		packet(other, &wire.Request{Register: true, HasBudget: true}, &wire.Cancel{Session: 1}), // a registration without a call
		packet(ask(0, 5, 0)), // it warms up
		{1, 2, 3},            // no packet of ours
	}
	for _, p := range packets {
		port.Send(dispatcher.Buffer{Bytes: p}, wire.Addr{})
	}
	got := c.traffic()
	if want := map[uint64]uint64{0: 1, 1: 3, 2: 1, 3: 1}; !maps.Equal(got.Attempts, want) || got.Requests != 8 || got.sum() != 5 {
		t.Errorf("%+v, want attempts %v", got, want)
	}
	if got.Packets != uint64(len(packets)) || under.sent != len(packets) {
		t.Errorf("%d packets counted, %d sent", got.Packets, under.sent)
	}
	if refused := dispatcher.SendRefused(port); refused != 3 {
		t.Errorf("%d refused", refused)
	}
	got.Attempts[1] = 100
	if c.traffic().Attempts[1] != 3 {
		t.Error("what was read is not a copy")
	}
}
