package dispatcher

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// network is a virtual world for dispatchers: packets take time, get lost, doubled and overtaken, by a seed.
type network struct {
	t         testing.TB
	now       clock.Time
	rng       *rand.Rand
	events    eventHeap
	order     uint64
	nodes     map[wire.Addr]*node
	peers     map[wire.Addr]*peer // crafted ones, see crafted_test.go
	loss      float64
	duplicate float64
	reorder   float64
	delay     time.Duration
	packets   int
	cut       map[wire.Addr]bool // nothing gets there or from there
}

type event struct {
	at    clock.Time
	order uint64
	do    func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// small makes the long tests short: asked for by -short, and by the race detector, under which they take ten times as long.
func small() bool { return testing.Short() || raceEnabled }

func newNetwork(t testing.TB, seed uint64) *network {
	return &network{
		t: t, now: 1_000_000_000, rng: rand.New(rand.NewPCG(seed, 1)), nodes: map[wire.Addr]*node{},
		peers: map[wire.Addr]*peer{}, cut: map[wire.Addr]bool{}, delay: 5 * time.Microsecond,
	}
}

func (w *network) at(when clock.Time, do func()) {
	w.order++
	heap.Push(&w.events, event{max(when, w.now), w.order, do})
}

// run advances the world until the given instant.
func (w *network) run(until clock.Time) {
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

func (w *network) send(from, to wire.Addr, payload []byte) {
	w.packets++
	copies := 1
	if w.rng.Float64() < w.loss {
		copies = 0
	}
	if w.rng.Float64() < w.duplicate {
		copies++
	}
	if w.cut[from] || w.cut[to] {
		copies = 0
	}
	for range copies {
		delay := w.delay
		if w.rng.Float64() < w.reorder {
			delay += time.Duration(w.rng.IntN(200)) * time.Microsecond
		}
		data := append([]byte(nil), payload...)
		w.at(w.now.Add(delay), func() {
			if p := w.peers[to]; p != nil {
				p.receive(data)
				return
			}
			if n := w.nodes[to]; n != nil {
				n.inbox = append(n.inbox, Datagram{Payload: data, From: from, Arrival: w.now.Add(n.early)})
				n.turn()
			}
		})
	}
}

// node is one endpoint: a dispatcher, and workers that take a given time for each request.
type node struct {
	w       *network
	addr    wire.Addr
	d       *Dispatcher
	inbox   []Datagram
	outbox  []outPacket
	service time.Duration
	workers int
	slots   int // of a session in the ledger; 0 = the default
	busy    int
	wakeAt  clock.Time
	ran     map[uint64]int // requests that ran, by the caller's mark in the payload
	lent    int
	// unchecked spares the ledger the audit of every session at every step: for tests with many.
	unchecked bool
	early     time.Duration // so long before its packets arrive it read the clock of its turn
	dead      bool          // a process that was killed: says and does nothing any more
	admission Admission
	method    admit.MethodConfig
	levels    bool // its calls are of any criticality
}

type outPacket struct {
	to   wire.Addr
	data []byte
}

const testPayloadMax = 1472

func (n *node) Receive(_ clock.Time, batch []Datagram) int {
	c := copy(batch, n.inbox)
	n.inbox = n.inbox[c:]
	return c
}
func (n *node) Lend() (Buffer, bool) {
	n.lent++
	b := make([]byte, testPayloadMax)
	for i := range b {
		b[i] = 0xa5 // what a used frame holds must never reach the wire
	}
	return Buffer{Bytes: b[:0]}, true
}
func (n *node) Send(b Buffer, to wire.Addr) {
	n.lent--
	n.outbox = append(n.outbox, outPacket{to, b.Bytes})
}
func (n *node) Drop(Buffer) { n.lent-- }
func (n *node) Kick() {
	for _, p := range n.outbox {
		if n.dead {
			break
		}
		n.w.send(n.addr, p.to, p.data)
	}
	n.outbox = n.outbox[:0]
}
func (n *node) Outstanding() int              { return 0 }
func (n *node) Wait(time.Duration, int) error { return nil }
func (n *node) LocalAddr() wire.Addr          { return n.addr }
func (n *node) PayloadMax() int               { return testPayloadMax }
func (n *node) Name() string                  { return "test" }
func (n *node) Stats() PortStats              { return PortStats{} }
func (n *node) Close() error                  { return nil }

func (w *network) node(last byte, cfg Config) *node {
	n := &node{w: w, addr: wire.Addr{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: last}, Port: 7700}, workers: 1, ran: map[uint64]int{}}
	if cfg.Epoch == 0 {
		cfg.Epoch = uint32(last)
	}
	n.d = New(cfg, n)
	w.nodes[n.addr] = n
	return n
}

// serve makes the node a server with the published law.
func (n *node) serve(service, target time.Duration, control credit.Controller) {
	if control == nil {
		control = credit.NewBreakwater(credit.BreakwaterConfig{TargetDelay: target, Workers: n.workers})
	}
	n.service = service
	n.d.Serve(ServeConfig{
		Credit:      credit.NewLedger(credit.Config{Checked: !n.unchecked, Slots: n.slots}, control),
		TargetDelay: target, DropThreshold: 2 * target, Parallel: n.workers, Workers: n.workers, Admission: n.admission,
	})
	m := &Method{Name: "work", ID: wire.MethodOf("work"), Run: n.handle, Admission: n.method}
	if err := n.d.Register(m); err != nil {
		n.w.t.Fatal(err)
	}
}

// handle echoes, and notes the mark.
func (n *node) handle(r *Request) {
	if len(r.Payload) >= 8 {
		n.ran[mark(r.Payload)]++
	}
	r.Reply = append(r.Reply[:0], r.Payload...)
}

func mark(p []byte) (m uint64) {
	for _, b := range p[:8] {
		m = m<<8 | uint64(b)
	}
	return m
}

func marked(m uint64) []byte {
	p := make([]byte, 64)
	for i := range 8 {
		p[i] = byte(m >> (56 - 8*i))
	}
	return p
}

// turn is one turn of the loop at the present instant.
func (n *node) turn() {
	if n.dead {
		return
	}
	for n.d.Receive(n.w.now) > 0 {
	}
	n.d.Tick(n.w.now)
	for n.busy < n.workers {
		r := n.d.Next(n.w.now)
		if r == nil {
			break
		}
		n.busy++
		r.Started = n.w.now
		n.w.at(n.w.now.Add(n.service), func() {
			if n.dead {
				return
			}
			r.Method.Run(r)
			r.Finished = n.w.now
			n.busy--
			n.d.Complete(n.w.now, r)
			n.turn()
		})
	}
	n.d.Flush(n.w.now)
	n.arm()
}

func (n *node) arm() {
	at := n.d.Deadline()
	if at == 0 || n.wakeAt != 0 && n.wakeAt <= at && n.wakeAt > n.w.now {
		return
	}
	n.wakeAt = max(at, n.w.now+1)
	when := n.wakeAt
	n.w.at(when, func() {
		if n.wakeAt == when {
			n.wakeAt = 0
			n.turn()
		}
	})
}

// call is one call of a test, with its outcome.
type call struct {
	Call
	done int
	at   clock.Time
}

func (n *node) call(s *Session, m uint64, deadline clock.Time) *call {
	c := &call{}
	c.Session, c.Method, c.Payload, c.Deadline = s, wire.MethodOf("work"), marked(m), deadline
	c.Done = func(*Call) {
		c.done++
		c.at = n.w.now
	}
	if n.levels {
		c.Criticality = wire.Criticality(n.w.rng.IntN(6))
	}
	n.d.Submit(n.w.now, &c.Call)
	n.turn()
	return c
}
