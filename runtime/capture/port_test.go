package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/capture/pcapng"
	"github.com/stillwater-rpc/stillwater/wire"
)

var (
	here  = wire.AddrFrom(netip.MustParseAddrPort("10.0.0.1:7700"))
	there = wire.AddrFrom(netip.MustParseAddrPort("10.0.0.2:999"))
)

// fake is a port that brings what the test puts in, and counts what the test wants it to.
type fake struct {
	inbox      []dispatcher.Datagram
	sent       [][]byte
	refuse     bool   // what is sent
	refuseKick uint64 // so many of what was sent
	stats      dispatcher.PortStats
	asked      int
	closed     error
}

func (f *fake) Receive(_ clock.Time, batch []dispatcher.Datagram) int {
	n := copy(batch, f.inbox)
	f.inbox = f.inbox[n:]
	f.stats.Received += uint64(n)
	return n
}
func (f *fake) Lend() (dispatcher.Buffer, bool) {
	return dispatcher.Buffer{Bytes: make([]byte, 0, 2000)}, true
}
func (f *fake) Send(b dispatcher.Buffer, _ wire.Addr) {
	if f.refuse {
		f.stats.SendDropped++
	} else {
		f.stats.Sent++
		f.sent = append(f.sent, bytes.Clone(b.Bytes))
	}
	clear(b.Bytes) // the port's from here on
}
func (f *fake) Drop(dispatcher.Buffer)        {}
func (f *fake) Kick()                         { f.stats.SendDropped += f.refuseKick }
func (f *fake) Outstanding() int              { return 3 }
func (f *fake) Wait(time.Duration, int) error { return nil }
func (f *fake) LocalAddr() wire.Addr          { return here }
func (f *fake) PayloadMax() int               { return 1472 }
func (f *fake) Name() string                  { return "fake" }
func (f *fake) Stats() dispatcher.PortStats   { f.asked++; return f.stats }
func (f *fake) SendRefused() uint64           { return f.stats.SendDropped }
func (f *fake) Close() error                  { return f.closed }

// send sends a payload as the dispatcher does.
func send(p dispatcher.Port, payload string) {
	b, _ := p.Lend()
	b.Bytes = append(b.Bytes, payload...)
	p.Send(b, there)
}

// record is a packet of a file.
type record struct {
	data    []byte
	info    gopacket.CaptureInfo
	out     bool
	dropped uint64
	comment string
}

// payload is what stands behind the headers of IPv4 and UDP.
func (r *record) payload() string { return string(r.data[28:]) }

// file is what another implementation reads in a capture.
type file struct {
	at         pcapgo.NgInterface
	records    []record
	statistics []pcapgo.NgInterfaceStatistics
}

func read(t testing.TB, from io.Reader) (f file) {
	t.Helper()
	r, err := pcapgo.NewNgReader(from, pcapgo.NgReaderOptions{
		StatisticsCallback: func(_ int, s pcapgo.NgInterfaceStatistics) { f.statistics = append(f.statistics, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.at, err = r.Interface(0); err != nil {
		t.Fatal(err)
	}
	for {
		data, info, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return f
		}
		if err != nil {
			t.Fatalf("after %d packets: %v", len(f.records), err)
		}
		next := record{data: data, info: info, comment: strings.Join(options.Comments, "|")}
		next.out = options.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound
		if !next.out && options.Flags.Direction != pcapgo.NgEpbFlagDirectionInbound {
			t.Fatalf("packet %d went nowhere: %+v", len(f.records), options.Flags)
		}
		if options.DropCount != nil {
			next.dropped = *options.DropCount
		}
		f.records = append(f.records, next)
	}
}

// last is what the capture says at its end.
func (f *file) last(t testing.TB) string {
	t.Helper()
	if len(f.statistics) == 0 {
		t.Fatal("no statistics at the end")
	}
	return f.statistics[len(f.statistics)-1].Comment
}

// tapped puts a tap that writes into memory on a port.
func tapped(t testing.TB, f *fake, cfg Config) (*port, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	tap, err := New(&out, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tap.Close() })
	return tap.Wrap(f).(*port), &out
}

func TestBothDirections(t *testing.T) {
	f := &fake{}
	p, out := tapped(t, f, Config{Name: "eth7"})
	before := time.Now()
	now := clock.Now()
	f.inbox = []dispatcher.Datagram{
		{Payload: []byte("request"), From: there, Arrival: now.Add(-time.Millisecond)},
		{Payload: nil, From: there, Arrival: now},
	}
	batch := make([]dispatcher.Datagram, 8)
	if n := p.Receive(now, batch); n != 2 || string(batch[0].Payload) != "request" || batch[0].From != there {
		t.Errorf("%d received: %+v", n, batch[:n])
	}
	send(p, "reply")
	p.Kick()
	if p.Name() != "fake" || p.LocalAddr() != here || p.PayloadMax() != 1472 || p.Outstanding() != 3 {
		t.Error("not the port that was wrapped")
	}
	if s := p.Stats(); s.Captured != 3 || s.CaptureMissed != 0 || s.Received != 2 || s.Sent != 1 {
		t.Errorf("statistics %+v", s)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if len(f.sent) != 1 || string(f.sent[0]) != "reply" {
		t.Errorf("sent %q", f.sent)
	}
	got := read(t, out)
	if got.at.Name != "eth7" || got.at.Description != "Stillwater port fake at 10.0.0.1:7700" || got.at.SnapLength != SnapBytesMax {
		t.Errorf("interface %+v", got.at)
	}
	if len(got.records) != 3 {
		t.Fatalf("%d packets", len(got.records))
	}
	for i, want := range []struct {
		payload string
		out     bool
	}{{"request", false}, {"", false}, {"reply", true}} {
		r := got.records[i]
		if r.payload() != want.payload || r.out != want.out || r.comment != "" || r.dropped != 0 || r.info.Length != len(r.data) {
			t.Errorf("packet %d: %+v", i, r)
		}
		if at := r.info.Timestamp; at.Before(before.Add(-2*time.Millisecond)) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("packet %d at %v, it is %v", i, at, before)
		}
		from, to := r.data[12:16], r.data[16:20]
		if want.out {
			from, to = to, from
		}
		if !bytes.Equal(from, there.IP[12:]) || !bytes.Equal(to, here.IP[12:]) {
			t.Errorf("packet %d from %v to %v", i, from, to)
		}
	}
	if d := got.records[1].info.Timestamp.Sub(got.records[0].info.Timestamp); d != time.Millisecond {
		t.Errorf("a millisecond between two arrivals became %v", d)
	}
	if last := got.last(t); last != "captured 3 packets, missed 0; the port refused to send 0" {
		t.Errorf("at the end: %s", last)
	}
}

// TestDropsAreMarked has the port lose packets in all the ways it can.
func TestDropsAreMarked(t *testing.T) {
	f := &fake{stats: dispatcher.PortStats{Received: 10}}
	p, out := tapped(t, f, Config{})
	now := clock.Time(1_000_000_000)
	p.Receive(now, nil) // reads the counters
	f.refuse = true
	send(p, "refused")
	f.refuse, f.refuseKick = false, 2
	send(p, "sent, and refused by the kernel")
	send(p, "as well")
	p.Kick()
	f.refuseKick = 0
	send(p, "after it")
	f.stats.ReceiveDropped += 5
	f.stats.SendDropped++ // the kernel's, of which only the counters tell
	p.Receive(now.Add(countersEvery-1), nil)
	send(p, "not known yet")
	p.Receive(now.Add(countersEvery), nil)
	f.refuse = true
	send(p, "refused too")
	f.stats.ReceiveDropped++
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	got := read(t, out)
	var comments []string
	var dropped []uint64
	for _, r := range got.records {
		comments, dropped = append(comments, r.comment), append(dropped, r.dropped)
	}
	if want := []string{
		"dropped: the port refused to send it.", "", "", "Of those sent before it, refused by the kernel: 2.", "",
		"dropped: the port refused to send it. Before it: lost at reception: 5. Of those sent before it, refused by the kernel: 1.",
	}; !slices.Equal(comments, want) {
		t.Errorf("comments %q\nwant %q", comments, want)
	}
	if want := []uint64{0, 0, 0, 0, 0, 5}; !slices.Equal(dropped, want) {
		t.Errorf("drop counts %v, want %v", dropped, want)
	}
	if len(got.statistics) != 3 {
		t.Fatalf("statistics %+v", got.statistics)
	}
	for i, want := range []struct {
		dropped uint64
		comment string
	}{{5, "not for this port): 5."}, {6, "not for this port): 1."}, {6, "captured 6 packets, missed 0; the port refused to send 5"}} {
		s := got.statistics[i]
		if s.PacketsDropped != want.dropped || s.PacketsReceived != 10+want.dropped || !strings.Contains(s.Comment, want.comment) {
			t.Errorf("statistics %d: %+v", i, s)
		}
	}
	if f.asked != 3 { // at the first Receive, after 100 ms, and at the end
		t.Errorf("the port was asked for its counters %d times", f.asked)
	}
}

// TestSnap keeps the beginning of each packet, down to the headers alone, and says how long it was.
func TestSnap(t *testing.T) {
	for _, snap := range []int{SnapBytesMin, SnapBytesMin + 1, 1028, 0} {
		p, out := tapped(t, &fake{}, Config{SnapBytes: snap})
		payload := strings.Repeat("x", 1000)
		send(p, payload)
		v6 := wire.Addr{IP: [16]byte{0: 0xfd, 15: 1}, Port: 9}
		b, _ := p.Lend()
		p.Send(dispatcher.Buffer{Bytes: append(b.Bytes, payload...)}, v6)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		got := read(t, out)
		for i, whole := range []int{1028, 1048} {
			kept := whole
			if snap > 0 {
				kept = min(whole, snap)
			}
			if r := got.records[i]; len(r.data) != kept || r.info.Length != whole || r.comment != "" {
				t.Errorf("snap %d: %d bytes of %d, want %d of %d", snap, len(r.data), r.info.Length, kept, whole)
			}
		}
	}
	for _, payload := range []int{65507, 65535} { // the longest of UDP over IPv4, and more than any port has
		p, out := tapped(t, &fake{}, Config{})
		b := dispatcher.Buffer{Bytes: make([]byte, payload)}
		p.Send(b, there)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if r := read(t, out).records[0]; len(r.data) != SnapBytesMax || r.info.Length != payload+28 {
			t.Errorf("%d bytes of %d", len(r.data), r.info.Length)
		}
	}
}

// TestRingFullIsTold stops the writer and sends more than the ring holds: the loop goes on, and the first packet that is captured again says what is missing.
func TestRingFullIsTold(t *testing.T) {
	out := &slowWriter{enter: make(chan bool), leave: make(chan bool)}
	tap, err := New(out, Config{RingBytes: RingBytesMin})
	if err != nil {
		t.Fatal(err)
	}
	p := tap.Wrap(&fake{}).(*port)
	<-out.enter // it writes the head of the file, and stays there
	const payload = 1000
	block := len(blockOf(0, 0)) - 4 + 28 + payload
	fits := RingBytesMin / block
	for range fits + 7 {
		send(p, strings.Repeat("x", payload))
	}
	if s := p.Stats(); s.Captured != uint64(fits) || s.CaptureMissed != 7 {
		t.Errorf("captured %d, missed %d; %d fit", s.Captured, s.CaptureMissed, fits)
	}
	close(out.leave)
	go func() {
		for range out.enter {
		}
	}()
	for p.tap.ring.tail.Load() == 0 { // until there is room again
		time.Sleep(time.Millisecond)
	}
	send(p, "after the gap")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	got := read(t, &out.Buffer)
	if len(got.records) != fits+1 {
		t.Fatalf("%d packets, want %d", len(got.records), fits+1)
	}
	after := got.records[fits]
	if after.payload() != "after the gap" || after.dropped != 7 || after.comment != "Before it: not captured, since the ring was full: 7." {
		t.Errorf("%+v", after)
	}
	if last := got.last(t); !strings.Contains(last, "missed 7;") {
		t.Errorf("at the end: %s", last)
	}
}

// slowWriter takes as long as the test wants.
type slowWriter struct {
	bytes.Buffer
	enter, leave chan bool
}

func (w *slowWriter) Write(b []byte) (int, error) {
	w.enter <- true
	<-w.leave
	return w.Buffer.Write(b)
}

func TestBlockHasRoom(t *testing.T) {
	p, _ := tapped(t, &fake{}, Config{SnapBytes: SnapBytesMin})
	p.gap = gap{missed: 1<<64 - 1, lost: 1<<64 - 1, refused: 1<<64 - 1}
	if n := len(p.gap.remark(nil, true)); n > commentMax {
		t.Errorf("a comment of %d bytes", n)
	}
	before := cap(p.block)
	p.begin(0, &here, &there, make([]byte, 100), true)
	p.end(pcapng.Outbound, true)
	if cap(p.block) != before || binary.LittleEndian.Uint32(p.block) != 6 {
		t.Errorf("the block grew from %d to %d bytes", before, cap(p.block))
	}
}
