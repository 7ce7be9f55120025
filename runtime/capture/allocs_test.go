//go:build !race

package capture

import (
	"io"
	"testing"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// TestAllocatesNothing counts the heap objects of a packet in and a packet out, with everything that there can be to say of them.
func TestAllocatesNothing(t *testing.T) {
	tap, err := New(io.Discard, Config{FileBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{refuse: true, refuseKick: 1}
	p := tap.Wrap(f).(*port)
	defer p.Close()
	inbox := []dispatcher.Datagram{{Payload: make([]byte, 200), From: there, Arrival: 1}}
	batch, bytes := make([]dispatcher.Datagram, 1), make([]byte, 200)
	now := clock.Time(1)
	allocs := testing.AllocsPerRun(10_000, func() {
		f.inbox = inbox
		f.stats.ReceiveDropped++
		now = now.Add(countersEvery)
		p.Receive(now, batch)
		p.Send(dispatcher.Buffer{Bytes: bytes}, there)
		p.Kick()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	if tap.Stats().Captured == 0 {
		t.Error("nothing was captured")
	}
}

// BenchmarkCapture is what a capture adds to a packet in and a packet out, of 200 bytes each.
func BenchmarkCapture(b *testing.B) {
	tap, err := New(io.Discard, Config{FileBytes: 1 << 60})
	if err != nil {
		b.Fatal(err)
	}
	f := &fake{refuse: true} // keeps nothing
	p := tap.Wrap(f)
	defer p.Close()
	inbox := []dispatcher.Datagram{{Payload: make([]byte, 200), From: there, Arrival: 1}}
	batch, bytes := make([]dispatcher.Datagram, 1), make([]byte, 200)
	b.ReportAllocs()
	for range b.N {
		f.inbox = inbox
		p.Receive(1, batch)
		p.Send(dispatcher.Buffer{Bytes: bytes}, there)
	}
	b.ReportMetric(float64(tap.Stats().Missed)/float64(b.N), "missed/op")
}
