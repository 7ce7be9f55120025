package handover

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// packet builds one with a message in it.
func packet(h wire.Header, m interface{ Append([]byte) []byte }) []byte {
	return wire.FinishPacket(m.Append(wire.BeginPacket(make([]byte, 0, 256))), h, 0)
}

// idOf is the id of a dispatcher's first connection.
func idOf(t *testing.T, owner uint8) wire.ConnectionID {
	t.Helper()
	c, err := session.NewTable(owner, 99, 1).Dial(wire.Addr{Port: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return c.Local
}

func TestRoute(t *testing.T) {
	const count = 4
	opens := idOf(t, 2)
	opener := session.OpenOwner(opens, count)
	open := wire.Header{Flags: wire.PacketHandshake}
	for name, test := range map[string]struct {
		payload []byte
		want    int
	}{
		"of our first":         {packet(wire.Header{Connection: idOf(t, 0)}, &wire.Busy{}), 0},
		"of our last":          {packet(wire.Header{Connection: idOf(t, 3)}, &wire.Busy{}), 3},
		"of one that is not":   {packet(wire.Header{Connection: idOf(t, 4)}, &wire.Busy{}), anywhere},
		"open":                 {packet(open, &wire.Open{Connection: opens}), opener},
		"open with its token":  {packet(open, &wire.Open{Connection: opens, HasToken: true, Token: wire.Token{1}}), opener},
		"retry":                {packet(wire.Header{Connection: opens}, &wire.Retry{}), 2},
		"gone":                 {packet(wire.Header{}, &wire.Gone{Connection: idOf(t, 1)}), dialers},
		"nothing":              {nil, anywhere},
		"header alone":         {packet(wire.Header{Connection: idOf(t, 1)}, &wire.Busy{})[:wire.HeaderBytes], anywhere},
		"one byte short of it": {packet(open, &wire.Open{Connection: opens})[:openIDAt+7], anywhere},
	} {
		if got := route(test.payload, count); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// FuzzRoute has any bytes name a dispatcher that there is, or nobody, and always the same.
func FuzzRoute(f *testing.F) {
	f.Add(packet(wire.Header{Flags: wire.PacketHandshake}, &wire.Open{Connection: 1 << 60}), 3)
	f.Add(packet(wire.Header{Connection: 5 << 58}, &wire.Busy{}), 64)
	f.Fuzz(func(t *testing.T, payload []byte, count int) {
		if count < 2 || count > session.OwnersMax {
			return
		}
		got := route(payload, count)
		if got >= count || got < dialers || got != route(payload, count) {
			t.Errorf("%x is for %d of %d", payload, got, count)
		}
	})
}
