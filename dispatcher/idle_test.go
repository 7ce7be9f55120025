package dispatcher

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/wire"
)

const (
	idleSessions    = 1_000_000
	idleConnections = 1000 // a process of a thousand virtual clients has one
	idleBytesMax    = 512
	idleRuns        = 3
)

// A million sessions that have answered one call each and say nothing any more cost at most 512 bytes each: resident
// memory of the process with them, less that before them, in /proc/self/statm, after what is free was returned to the kernel.
//
//	go test -run TestIdleSessions -v ./dispatcher
//
// prints the bytes per session of three runs; without -v there is one.
func TestIdleSessions(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("short: a million sessions take some seconds")
	case raceEnabled:
		t.Skip("race: the detector's shadow memory, several bytes for each, would be measured, not ours")
	}
	runs := 1
	if testing.Verbose() {
		runs = idleRuns
	}
	var each []int
	for range runs {
		each = append(each, idleBytes(t))
	}
	slices.Sort(each)
	t.Logf("resident bytes per idle session: median %d, from %d to %d in %d runs of %d sessions over %d connections",
		each[len(each)/2], each[0], each[len(each)-1], runs, idleSessions, idleConnections)
	if each[len(each)-1] > idleBytesMax {
		t.Errorf("%d bytes, at most %d", each[len(each)-1], idleBytesMax)
	}
}

// idleBytes fills a server and returns the resident bytes per session.
func idleBytes(t *testing.T) int {
	w := newNetwork(t, 1)
	server := w.node(1, Config{TrustedNetwork: true})
	server.unchecked = true
	server.ran = nil // the echo below keeps no marks
	server.serve(time.Microsecond, 80*time.Microsecond, nil)
	server.d.server.methods[wire.MethodOf("work")].Run = func(r *Request) { r.Reply = append(r.Reply, r.Payload...) }
	in := newCrowd(w, server)
	before := resident(t)
	in.register()
	if got := server.d.Snapshot(); got.Completed != idleSessions || got.Sessions != idleSessions || got.Connections != idleConnections {
		t.Fatalf("%d calls answered, %d sessions, %d connections", got.Completed, got.Sessions, got.Connections)
	}
	// After the life of a packet the slots and their replies are gone, after the lease the credits.
	for range 5000 {
		w.now = w.now.Add(time.Millisecond)
		server.d.Tick(w.now)
	}
	if s := &server.d.server; len(s.tables)-1 != len(s.spare) || s.pool.lent != 0 || s.ledger.Totals().Issued != 0 {
		t.Fatalf("%d tables of slots, %d request objects, %d credits", len(s.tables)-1-len(s.spare), s.pool.lent, s.ledger.Totals().Issued)
	}
	used := resident(t) - before
	runtime.KeepAlive(server)
	runtime.KeepAlive(in)
	return used / idleSessions
}

// crowd registers sessions from many addresses, by packets made in place.
type crowd struct {
	w      *network
	server *node
	packet []byte
	remote []wire.ConnectionID
	number []wire.PacketNumber
}

func newCrowd(w *network, server *node) *crowd {
	k := &crowd{
		w: w, server: server, packet: make([]byte, 0, 256),
		remote: make([]wire.ConnectionID, idleConnections), number: make([]wire.PacketNumber, idleConnections),
	}
	delete(w.nodes, server.addr) // its packets are looked at, not carried
	return k
}

func (k *crowd) addr(i int) wire.Addr {
	return wire.Addr{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 1, 14: byte(i >> 8), 15: byte(i)}, Port: 7700}
}

// say delivers one packet, lets the request run, and returns the answer.
func (k *crowd) say(i int, flags wire.PacketFlags, messages ...appender) wire.Packet {
	b := wire.BeginPacket(k.packet)
	for _, m := range messages {
		b = m.Append(b)
	}
	h := wire.Header{Flags: flags, Connection: k.remote[i], Number: k.number[i]}
	k.number[i]++
	d := k.server.d
	k.server.inbox = append(k.server.inbox[:0], Datagram{Payload: wire.FinishPacket(b, h, 0), From: k.addr(i), Arrival: k.w.now})
	k.w.now = k.w.now.Add(2 * time.Microsecond)
	d.Receive(k.w.now)
	d.Tick(k.w.now)
	if r := d.Next(k.w.now); r != nil {
		r.Started = k.w.now
		r.Method.Run(r)
		r.Finished = k.w.now.Add(time.Microsecond)
		d.Complete(r.Finished, r)
	}
	d.now = k.w.now
	for _, c := range d.dirty {
		if o := &d.out[c.Index()]; o.open {
			d.finish(c, o)
		}
	}
	packet, _ := wire.ParsePacket(k.server.outbox[len(k.server.outbox)-1].data)
	k.server.outbox = k.server.outbox[:0]
	d.Flush(k.w.now)
	return packet
}

func (k *crowd) register() {
	for i := range idleConnections {
		p := k.say(i, wire.PacketHandshake, &wire.Open{Connection: wire.ConnectionID(1 + i)})
		m, _, _ := wire.NextMessage(p.Messages)
		accept, _ := wire.ParseAccept(m.Raw)
		k.remote[i] = accept.Connection
	}
	r := wire.Request{Register: true, Next: 1, Method: wire.MethodOf("work"), Payload: make([]byte, 64)}
	for n := range idleSessions {
		r.Session = wire.SessionID(1 + n/idleConnections)
		k.say(n%idleConnections, 0, &r)
	}
}

// resident is the memory of the process that is in RAM, once what is free was returned.
func resident(t *testing.T) int {
	for range 2 {
		runtime.GC()
		debug.FreeOSMemory()
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc: the resident memory is not to be had")
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
