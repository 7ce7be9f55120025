package handover

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/wire"
)

// mute is a fake that sends nothing and keeps packets.
type mute struct{ holding }

func (mute) Lend() (dispatcher.Buffer, bool) {
	return dispatcher.Buffer{Bytes: make([]byte, 0, 1472)}, true
}
func (mute) Send(dispatcher.Buffer, wire.Addr) {}
func (mute) Drop(dispatcher.Buffer)            {}
func (mute) Kick()                             {}
func (mute) Outstanding() int                  { return 0 }
func (mute) PayloadMax() int                   { return 1472 }

// TestRepeatedOpens has clients open a connection with their first request in the same packet, and repeat that at any of four queues. Each makes one connection
// and is run once, wherever its packets come in.
func TestRepeatedOpens(t *testing.T) {
	const count, clients = 4, 50
	random := seedtest.Rand(t)
	method := wire.MethodOf("echo")
	var ports []dispatcher.Port
	var fakes []*fake
	for range count {
		f := &fake{away: make(map[uint64][]byte), from: wire.Addr{IP: [16]byte{15: 1}, Port: 7}}
		fakes, ports = append(fakes, f), append(ports, mute{holding{f}})
	}
	g := Join(ports)
	var all []*dispatcher.Dispatcher
	for i := range count {
		d := dispatcher.New(dispatcher.Config{Owner: uint8(i), Epoch: 1, TrustedNetwork: true}, g.Port(i))
		if err := d.Register(&dispatcher.Method{Name: "echo", ID: method}); err != nil {
			t.Fatal(err)
		}
		d.Serve(dispatcher.ServeConfig{Credit: credit.NewLedger(credit.Config{Slots: 256}, credit.NewNone(256))})
		all = append(all, d)
	}
	now := clock.Time(1_000_000)
	for client := range clients {
		// Another address for each: a server accepts eight connections from one.
		for _, f := range fakes {
			f.from.Port = uint16(1000 + client)
		}
		id := wire.ConnectionID(random.Uint64() | 1)
		for number := range 10 { // of the packet: each repetition has its own
			b := wire.BeginPacket(make([]byte, 0, 256))
			b = (&wire.Open{Connection: id}).Append(b)
			b = (&wire.Request{Register: true, Session: 1, Next: 1, Method: method, Payload: []byte("once")}).Append(b)
			p := wire.FinishPacket(b, wire.Header{Flags: wire.PacketHandshake, Number: wire.PacketNumber(number)}, 0)
			at := random.IntN(count)
			fakes[at].arrived = append(fakes[at].arrived, p)
			if random.IntN(2) == 0 {
				turn(all, &now)
			}
		}
		for range 3 {
			turn(all, &now)
		}
	}
	var sum dispatcher.Snapshot
	for i, d := range all {
		s := d.Snapshot()
		if s.Connections == 0 || s.Connections == clients {
			t.Errorf("dispatcher %d has %d of %d connections", i, s.Connections, clients)
		}
		sum.Add(&s)
	}
	if sum.Connections != clients || sum.Sessions != clients || sum.Admitted != clients || sum.Duplicates+sum.Stale != 9*clients || sum.Port.HandedOver == 0 {
		t.Errorf("%d connections, %d sessions, %d admitted, %d duplicates, %d overtaken, %d handed over",
			sum.Connections, sum.Sessions, sum.Admitted, sum.Duplicates, sum.Stale, sum.Port.HandedOver)
	}
	for i, f := range fakes {
		if len(f.away) != 0 {
			t.Errorf("%d packets of port %d did not come home", len(f.away), i)
		}
	}
}

// turn has each dispatcher take what is there for it.
func turn(all []*dispatcher.Dispatcher, now *clock.Time) {
	for _, d := range all {
		*now += 1000
		d.Receive(*now)
		d.Flush(*now)
	}
}

// BenchmarkHandover is what a packet costs the two dispatchers together, on one CPU, beyond being received.
func BenchmarkHandover(b *testing.B) {
	f := &fake{}
	g := Join([]dispatcher.Port{still{f}, &fake{}})
	p := packet(wire.Header{Connection: 1<<58 | 1}, &wire.Busy{})
	arrived, batch := [][]byte{p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p}, make([]dispatcher.Datagram, 64)
	b.ReportAllocs()
	for b.Loop() {
		f.arrived = arrived
		g.Port(0).Receive(1, batch)
		if g.Port(1).Receive(1, batch) != len(arrived) {
			b.Fatal("not all came over")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(arrived)), "ns/packet")
}
