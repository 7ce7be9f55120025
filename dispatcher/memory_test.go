package dispatcher

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// wirePort is one end of a wire without delay: buffers are made once, so that what is allocated is the dispatchers' doing.
type wirePort struct {
	addr  wire.Addr
	peer  *wirePort
	free  [][]byte
	ready []Datagram // on their way to us
	taken [][]byte   // handed out by the last Receive
	now   clock.Time
}

func newWire(buffers int) (a, b *wirePort) {
	a = &wirePort{addr: wire.Addr{IP: [16]byte{15: 1}, Port: 1}}
	b = &wirePort{addr: wire.Addr{IP: [16]byte{15: 2}, Port: 2}}
	a.peer, b.peer = b, a
	for _, p := range []*wirePort{a, b} {
		for range buffers {
			p.free = append(p.free, make([]byte, 0, testPayloadMax))
		}
	}
	return a, b
}

func (p *wirePort) Receive(_ clock.Time, batch []Datagram) int {
	p.peer.free = append(p.peer.free, p.taken...)
	p.taken = p.taken[:0]
	n := copy(batch, p.ready)
	for _, d := range p.ready[:n] {
		p.taken = append(p.taken, d.Payload)
	}
	p.ready = p.ready[:copy(p.ready, p.ready[n:])]
	return n
}
func (p *wirePort) Lend() (Buffer, bool) {
	if len(p.free) == 0 {
		return Buffer{}, false
	}
	b := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return Buffer{Bytes: b[:0]}, true
}
func (p *wirePort) Send(b Buffer, _ wire.Addr) {
	p.peer.ready = append(p.peer.ready, Datagram{Payload: b.Bytes, From: p.addr, Arrival: p.now})
}
func (p *wirePort) Drop(b Buffer)                 { p.free = append(p.free, b.Bytes) }
func (p *wirePort) Kick()                         {}
func (p *wirePort) Outstanding() int              { return 0 }
func (p *wirePort) Wait(time.Duration, int) error { return nil }
func (p *wirePort) LocalAddr() wire.Addr          { return p.addr }
func (p *wirePort) PayloadMax() int               { return testPayloadMax }
func (p *wirePort) Name() string                  { return "wire" }
func (p *wirePort) Stats() PortStats              { return PortStats{} }
func (p *wirePort) Close() error                  { return nil }

// memoryPair is a server and a client on one wire, with calls that are submitted again as soon as they end.
type memoryPair struct {
	server, client *Dispatcher
	ports          [2]*wirePort
	now            clock.Time
	ended          int
	outcomes       [outcomeMax]int
}

func newMemoryPair(t testing.TB, sessions, outstanding int) *memoryPair {
	return newSchemePair(t, baseline.Stillwater, sessions, outstanding)
}

func newSchemePair(t testing.TB, name string, sessions, outstanding int) *memoryPair {
	scheme, err := baseline.Lookup(name, baseline.Params{Workers: 16, Clients: sessions})
	if err != nil {
		t.Fatal(err)
	}
	a, b := newWire(256)
	m := &memoryPair{ports: [2]*wirePort{a, b}, now: 1_000_000_000}
	m.server = New(Config{TrustedNetwork: true, Epoch: 1}, a)
	m.server.Serve(ServeConfig{
		Credit:      credit.NewLedger(credit.Config{Slots: scheme.Slots}, scheme.NewController()),
		TargetDelay: scheme.TargetDelay, DropThreshold: scheme.DropThreshold, Workers: 16, Parallel: 16,
	})
	echo := &Method{Name: "echo", ID: wire.MethodOf("echo"), Run: func(r *Request) { r.Reply = append(r.Reply, r.Payload...) }}
	if err := m.server.Register(echo); err != nil {
		t.Fatal(err)
	}
	m.client = New(Config{Epoch: 2, ClientPolicy: scheme.NewPolicy}, b)
	payload := make([]byte, 64)
	for range sessions {
		s, err := m.client.Open(m.now, a.addr)
		if err != nil {
			t.Fatal(err)
		}
		for range outstanding {
			c := &Call{Session: s, Method: echo.ID, Payload: payload, Deadline: m.now.Add(time.Second)}
			c.Done = func(c *Call) {
				m.ended++
				m.outcomes[c.Outcome]++
				c.Reply, c.Deadline = c.Reply[:0], m.now.Add(time.Second)
				m.client.Submit(m.now, c)
			}
			m.client.Submit(m.now, c)
		}
	}
	return m
}

// turn is one turn of both ends, a microsecond after the last.
func (m *memoryPair) turn() {
	m.now += 1000
	m.ports[0].now, m.ports[1].now = m.now, m.now
	m.client.Tick(m.now)
	m.client.Flush(m.now)
	for m.server.Receive(m.now) > 0 {
	}
	m.server.Tick(m.now)
	for r := m.server.Next(m.now); r != nil; r = m.server.Next(m.now) {
		r.Started = m.now
		r.Method.Run(r)
		r.Finished = m.now + 500
		m.server.Complete(m.now, r)
	}
	m.server.Flush(m.now)
	for m.client.Receive(m.now) > 0 {
	}
}

// What a call needs of its session is four cache lines, and the session is six.
func TestSessionLayout(t *testing.T) {
	const line = 64
	var s Session
	if hot := unsafe.Offsetof(s.waiting) + unsafe.Sizeof(int32(0)); hot > 4*line {
		t.Errorf("what every call needs is %d bytes", hot)
	}
	if size := unsafe.Sizeof(s); size > 6*line {
		t.Errorf("a session is %d bytes", size)
	}
}

// BenchmarkCalls is the work of both ends together for one call, without kernel, NIC, handler or scheduler.
func BenchmarkCalls(b *testing.B) {
	for _, x := range []struct {
		name                  string
		sessions, outstanding int
		guard                 *client.Guard
	}{
		{"1session1", 1, 1, nil}, {"1session16", 1, 16, nil}, {"100sessions4", 100, 4, nil},
		{"100sessions4guarded", 100, 4, client.NewGuard(client.GuardConfig{Hedge: client.HedgeConfig{Percentile: 0.95}, Throttle: client.ThrottleConfig{K: 2}})},
	} {
		b.Run(x.name, func(b *testing.B) {
			m := newMemoryPair(b, x.sessions, x.outstanding)
			for _, s := range m.client.caller.sessions {
				if s != nil {
					m.client.SetGuard(s, x.guard)
				}
			}
			for range 2000 {
				m.turn()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for until := m.ended + b.N; m.ended < until; {
				m.turn()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/call")
		})
	}
}
