package sim

import (
	"encoding/binary"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Host is one endpoint: a dispatcher, and the port that it believes in. One that is no [Machine] handles what arrives at once.
type Host struct {
	w       *World
	addr    wire.Addr
	cfg     dispatcher.Config
	d       *dispatcher.Dispatcher
	machine *Machine // nil = a client
	epoch   uint32
	calls   uint64 // live ones of its present process

	wakeAt  clock.Time // of the only wake-up that counts; zero = none
	stopped clock.Time // it does nothing until then

	// of the port
	inbox  packetQueue // what the dispatcher may take
	taken  *packet     // what it is looking at
	outbox packetQueue // to be kicked
	lent   []*packet   // by token; nil = not lent
	spare  []uint64    // tokens
	down   bool
}

// packetQueue is first in, first out.
type packetQueue struct {
	head, tail *packet
	count      int
}

func (q *packetQueue) put(p *packet) {
	if q.tail == nil {
		q.head = p
	} else {
		q.tail.next = p
	}
	q.tail, p.next = p, nil
	q.count++
}

func (q *packetQueue) take() *packet {
	p := q.head
	if p == nil {
		return nil
	}
	q.head = p.next
	if q.head == nil {
		q.tail = nil
	}
	p.next = nil
	q.count--
	return p
}

// drop frees all of them.
func (q *packetQueue) drop(w *World) {
	for p := q.take(); p != nil; p = q.take() {
		w.net.lost++
		w.free(p)
	}
}

const port = 7700

// host finds a host by its address.
func (w *World) host(a wire.Addr) *Host {
	index := binary.BigEndian.Uint32(a.IP[12:]) & 0xffffff
	if index >= uint32(len(w.hosts)) || w.hosts[index].addr != a {
		return nil
	}
	return w.hosts[index]
}

// AddHost adds a host that only calls. Its token key, which is secret and random in a real one, comes from the world's seed.
func (w *World) AddHost(cfg dispatcher.Config) *Host {
	h := &Host{w: w, cfg: cfg}
	h.addr = wire.Addr{Port: port}
	h.addr.IP[10], h.addr.IP[11] = 0xff, 0xff
	binary.BigEndian.PutUint32(h.addr.IP[12:], 10<<24|uint32(len(w.hosts)))
	w.hosts = append(w.hosts, h)
	h.boot()
	return h
}

// boot gives the host a new dispatcher, which knows nothing of the one before.
func (h *Host) boot() {
	h.epoch++
	h.cfg.Epoch = h.epoch
	for i := 0; i < len(h.cfg.TokenKey); i += 8 {
		binary.BigEndian.PutUint64(h.cfg.TokenKey[i:], h.w.keys.Uint64())
	}
	h.d = dispatcher.New(h.cfg, (*hostPort)(h))
	h.down = false
}

// Addr is the host's address.
func (h *Host) Addr() wire.Addr { return h.addr }

// Dispatcher is the host's dispatcher until its next restart.
func (h *Host) Dispatcher() *dispatcher.Dispatcher { return h.d }

// Kill ends the host's process: what it held is gone, its calls have no outcome, and what arrives is lost.
func (h *Host) Kill() {
	h.down = true
	h.w.checks.Killed += h.calls
	h.calls = 0
	h.inbox.drop(h.w)
	h.outbox.drop(h.w)
	for _, p := range h.lent {
		if p != nil {
			h.w.free(p)
		}
	}
	h.lent, h.spare = nil, nil
	if h.machine != nil {
		h.machine.kill()
	}
	h.wakeAt = 0
}

// Restart boots a host that was killed, as an empty process at the same address.
func (h *Host) Restart() {
	h.boot()
	if h.machine != nil {
		h.machine.boot()
	}
}

// Stall stops the host for so long, as happens to one that is not given its CPUs, or whose process is: packets go on arriving, and what is due or was under way
// waits until the stall ends.
func (h *Host) Stall(length time.Duration) {
	h.stopped = max(h.stopped, h.w.now.Add(length))
	h.w.at(h.stopped, script(func() {
		switch {
		case h.down || h.stalls():
		case h.machine != nil:
			h.machine.assign()
			h.machine.wake()
		default:
			h.receive()
		}
	}))
}

// stalls reports whether the host does nothing.
func (h *Host) stalls() bool { return h.w.now < h.stopped }

// arrive takes a packet off the network.
func (h *Host) arrive(p *packet) {
	switch {
	case h.down:
		h.w.net.lost++
		h.w.free(p)
	case h.machine != nil:
		h.machine.arrive(p)
	default:
		h.inbox.put(p)
		if !h.stalls() {
			h.receive()
		}
	}
}

// receive takes in all that has arrived.
func (h *Host) receive() {
	for h.inbox.count > 0 {
		h.d.Receive(h.w.now)
	}
	h.turn()
}

// turn does what is due, sends what is to be sent, and foresees the next time.
func (h *Host) turn() {
	h.d.Tick(h.w.now)
	h.d.Flush(h.w.now)
	h.arm()
}

// arm foresees the dispatcher's next deadline. An earlier wake-up that is under way finds it when it comes.
func (h *Host) arm() {
	at := h.d.Deadline()
	if at == 0 || h.wakeAt != 0 && h.wakeAt <= at {
		return
	}
	h.wakeAt = max(at, h.w.now+1)
	h.w.at(h.wakeAt, h)
}

// act is a wake-up.
func (h *Host) act(w *World) {
	if h.down || w.now != h.wakeAt {
		return // one that an earlier one has replaced
	}
	h.wakeAt = 0
	switch {
	case h.stalls(): // its end finds what is due
	case h.machine != nil:
		h.machine.wake()
	default:
		h.turn()
	}
}

// Do runs f with the host's dispatcher, as its owner, and sends what comes of it.
func (h *Host) Do(f func(d *dispatcher.Dispatcher, now clock.Time)) {
	f(h.d, h.w.now)
	h.turn()
}
