//go:build linux && !portable

package udpport_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/runtime/udpport"
)

// waitAllocated waits until the packets in the socket occupy at least want bytes, and returns how many they do.
func waitAllocated(t *testing.T, p *udpport.Port, want int) int {
	t.Helper()
	for deadline := clock.Now().Add(10 * time.Second); ; runtime.Gosched() {
		got := udpport.ReceiveAllocated(p)
		if got >= want {
			return got
		}
		if clock.Now().After(deadline) {
			t.Fatalf("the packets in the socket occupy %d bytes, want %d", got, want)
		}
	}
}

// TestBatchIsOneCall shows that a batch of 64 comes with one Receive.
func TestBatchIsOneCall(t *testing.T) {
	a, b := open(t, udpport.Config{}), open(t, udpport.Config{})
	send(t, a, b.LocalAddr(), []byte("x"))
	a.Kick()
	each := waitAllocated(t, b, 1)
	for range 69 {
		send(t, a, b.LocalAddr(), []byte("x"))
	}
	a.Kick()
	waitAllocated(t, b, 70*each)
	batch := make([]dispatcher.Datagram, 100)
	for i, want := range []int{64, 6, 0} {
		if got := b.Receive(clock.Now(), batch); got != want {
			t.Errorf("call %d returned %d datagrams, want %d", i, got, want)
		}
	}
	if s := b.Stats(); s.Received != 70 || s.EmptyPolls != 1 {
		t.Errorf("the receiver counts %+v", s)
	}
	if got := b.Receive(clock.Now(), nil); got != 0 {
		t.Errorf("an empty batch took %d", got)
	}
}

// TestSmallBatch leaves in the socket what the caller has no room for.
func TestSmallBatch(t *testing.T) {
	a, b := open(t, udpport.Config{}), open(t, udpport.Config{})
	send(t, a, b.LocalAddr(), []byte("y"))
	send(t, a, b.LocalAddr(), []byte("z"))
	a.Kick()
	batch := make([]dispatcher.Datagram, 1)
	for _, want := range []string{"y", "z"} {
		if err := b.Wait(-1, -1); err != nil {
			t.Fatal(err)
		}
		if got := b.Receive(clock.Now(), batch); got != 1 || string(batch[0].Payload) != want {
			t.Errorf("a batch of one took %d, %q, want %q", got, batch[0].Payload, want)
		}
	}
}

func TestKernelDropsAreCounted(t *testing.T) {
	a, b := open(t, udpport.Config{BufferCount: 1000}), open(t, udpport.Config{ReceiveBufferBytes: 4096})
	for range 1000 {
		send(t, a, b.LocalAddr(), make([]byte, 1000))
	}
	a.Kick()
	batch := make([]dispatcher.Datagram, 64)
	s := b.Stats()
	for deadline := clock.Now().Add(10 * time.Second); s.Received+s.ReceiveDropped < a.Stats().Sent; s = b.Stats() {
		b.Receive(clock.Now(), batch)
		if clock.Now().After(deadline) {
			break
		}
	}
	if s.Received == 0 || s.ReceiveDropped == 0 || s.Received+s.ReceiveDropped != a.Stats().Sent {
		t.Errorf("of %d sent, the receiver counts %+v", a.Stats().Sent, s)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if after := b.Stats(); after.ReceiveDropped != s.ReceiveDropped {
		t.Errorf("after Close the receiver counts %+v", after)
	}
}

func TestNoAllocation(t *testing.T) {
	a, b := open(t, udpport.Config{}), open(t, udpport.Config{})
	batch := make([]dispatcher.Datagram, 64)
	payload := make([]byte, 64)
	received := 0
	if n := testing.AllocsPerRun(50, func() { received += pump(a, b, 64, payload, batch) }); n != 0 {
		t.Errorf("64 datagrams cost %v allocations", n)
	}
	if received != 51*64 {
		t.Errorf("received %d datagrams", received)
	}
}
