package udpport_test

import (
	"fmt"
	"testing"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/udpport"
)

// pump sends count datagrams from a to b and takes them all off.
func pump(a, b *udpport.Port, count int, payload []byte, batch []dispatcher.Datagram) (received int) {
	to := b.LocalAddr()
	for range count {
		buffer, _ := a.Lend()
		buffer.Bytes = append(buffer.Bytes, payload...)
		a.Send(buffer, to)
	}
	a.Kick()
	for received < count {
		received += b.Receive(clock.Now(), batch)
	}
	return received
}

// BenchmarkLoopback is one datagram from Send to Receive, both ends on one thread: the sum of both sides' costs.
func BenchmarkLoopback(b *testing.B) {
	for _, count := range []int{1, 8, 64} {
		for _, noStamps := range []bool{false, true} {
			b.Run(fmt.Sprintf("batch=%d/stamps=%v", count, !noStamps), func(b *testing.B) {
				from := open(b, udpport.Config{NoKernelStamps: noStamps})
				to := open(b, udpport.Config{NoKernelStamps: noStamps})
				batch := make([]dispatcher.Datagram, 64)
				payload := make([]byte, 64)
				received := 0
				for b.Loop() {
					received += pump(from, to, count, payload, batch)
				}
				if received != b.N*count {
					b.Errorf("received %d of %d", received, b.N*count)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(received), "ns/datagram")
			})
		}
	}
}

// BenchmarkEmptyPoll is what a spinning loop pays for finding nothing.
func BenchmarkEmptyPoll(b *testing.B) {
	p := open(b, udpport.Config{})
	batch := make([]dispatcher.Datagram, 64)
	for b.Loop() {
		p.Receive(clock.Now(), batch)
	}
}
