package dispatcher

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/wire"
)

// script reads a fuzzer's bytes as a conversation: each step has an operation, a length, and the bytes of a datagram.
type script []byte

// next takes one step off.
func (s *script) next() (op byte, datagram []byte, ok bool) {
	b := *s
	if len(b) < 3 {
		return 0, nil, false
	}
	n := min(int(binary.BigEndian.Uint16(b[1:])), len(b)-3, testPayloadMax)
	*s = b[3+n:]
	return b[0], append([]byte(nil), b[3:3+n]...), true
}

// The operations of a script: what to do with the datagram before it is delivered.
const (
	scriptRaw     = iota // nothing
	scriptAddress        // put the connection's id and the next packet number in
	scriptWrap           // the bytes are messages: put a packet around them
	scriptOpen           // the same, behind an open
	scriptWait           // let time pass instead
	scriptCall           // submit a call instead (client only)
	scriptOps
)

// mutate makes the datagram of a step.
func (p *peer) mutate(op byte, data []byte, id wire.ConnectionID) []byte {
	switch op % scriptOps {
	case scriptAddress:
		if len(data) >= wire.HeaderBytes {
			binary.BigEndian.PutUint64(data[4:], uint64(id))
			binary.BigEndian.PutUint64(data[12:], uint64(p.number))
			p.number++
		}
	case scriptWrap:
		return p.packet(0, id, raw(data))
	case scriptOpen:
		return p.packet(wire.PacketHandshake, 0, &wire.Open{Connection: p.local}, raw(data))
	}
	return data
}

// raw is bytes in the place of messages.
type raw []byte

func (r raw) Length() int            { return len(r) }
func (r raw) Append(b []byte) []byte { return append(b, r...) }

// addScripts seeds the corpus with conversations of valid messages.
func addScripts(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	handles := []wire.SessionID{0, 1, 2, 1<<24 | 1, 1<<24 | 2}
	for range 40 {
		var s []byte
		for range 1 + rng.IntN(12) {
			body := anything(rng, handles).Append(nil)
			op := []byte{scriptWrap, scriptWrap, scriptWrap, scriptOpen, scriptWait, scriptCall}[rng.IntN(6)]
			s = append(s, op, byte(len(body)>>8), byte(len(body)))
			s = append(s, body...)
		}
		f.Add(s)
	}
}

// FuzzServer talks to a server that trusts its network. Whatever is said, it does not panic, its books balance, and its bounds hold.
func FuzzServer(f *testing.F) {
	addScripts(f)
	f.Fuzz(func(t *testing.T, s []byte) {
		w := newNetwork(t, 1)
		server := w.node(1, Config{TrustedNetwork: true, SessionsMax: 20, ConnectionsMax: 5})
		server.serve(10*time.Microsecond, 80*time.Microsecond, nil)
		p := w.peer(9, server).connect()
		for op, data, ok := (*script)(&s).next(); ok; op, data, ok = (*script)(&s).next() {
			if op%scriptOps >= scriptWait {
				w.run(w.now.Add(time.Duration(len(data)) * 10 * time.Microsecond))
				continue
			}
			p.deliver(p.mutate(op, data, p.remote))
			server.bounded(t)
		}
		w.run(w.now.Add(20 * time.Millisecond))
		server.bounded(t)
		if n := server.d.Pending(); n != 0 {
			t.Fatalf("%d requests pending for ever", n)
		}
	})
}

// FuzzClient answers a client's calls. Whatever is said, each call has exactly one outcome.
func FuzzClient(f *testing.F) {
	addScripts(f)
	f.Fuzz(func(t *testing.T, s []byte) {
		w, p, client, session := pretend(t)
		calls := []*call{client.call(session, 1, 0)}
		p.settle()
		p.accept(session, 7, 5)
		for op, data, ok := (*script)(&s).next(); ok; op, data, ok = (*script)(&s).next() {
			switch op % scriptOps {
			case scriptWait:
				w.run(w.now.Add(time.Duration(len(data)) * 10 * time.Microsecond))
			case scriptCall:
				calls = append(calls, client.call(session, uint64(len(calls)), w.now.Add(time.Duration(len(data))*time.Microsecond)))
			default:
				p.deliver(p.mutate(op, data, p.remote))
			}
			client.bounded(t)
		}
		client.d.CloseSession(w.now, session)
		client.turn()
		for i, c := range calls {
			if c.done != 1 {
				t.Fatalf("call %d has %d outcomes", i, c.done)
			}
		}
		w.run(w.now.Add(time.Second))
		client.bounded(t)
	})
}
