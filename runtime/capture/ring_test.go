package capture

import (
	"bytes"
	"encoding/binary"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/runtime/capture/pcapng"
)

// blockOf is a packet's block of some length, with bytes that say which one it is.
func blockOf(number uint32, bytes int) []byte {
	b := pcapng.BeginPacket(nil)
	b = binary.LittleEndian.AppendUint32(b, number)
	for range bytes {
		b = append(b, byte(number))
	}
	return (&pcapng.Packet{Length: bytes, Direction: pcapng.Inbound}).Finish(b)
}

// TestRingAgainstTwin compares the ring with a list of blocks, of all lengths, so that they lie across the end in every way.
func TestRingAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	r := newRing(3000)
	if len(r.bytes) != 4096 {
		t.Fatalf("%d bytes", len(r.bytes))
	}
	var twin [][]byte
	used, refused := 0, 0
	buffer := make([]byte, 1024)
	for i := range uint32(100_000) {
		if random.IntN(2) == 0 {
			b := blockOf(i, random.IntN(600))
			room := used+len(b) <= len(r.bytes)
			if r.put(b) != room {
				t.Fatalf("block %d of %d bytes was not %t with %d in use", i, len(b), room, used)
			}
			if room {
				twin, used = append(twin, b), used+len(b)
				if got := r.filling(); got != (used >= 1024) {
					t.Fatalf("filling is %t with %d in use", got, used)
				}
			} else {
				refused++
			}
			continue
		}
		chunk := 1 + random.IntN(len(buffer))
		got := r.take(buffer, chunk)
		var want []byte
		for len(twin) > 0 && (len(want) == 0 || len(want)+len(twin[0]) <= chunk) {
			want, twin = append(want, twin[0]...), twin[1:]
		}
		used -= len(want)
		if !bytes.Equal(got, want) {
			t.Fatalf("took %d bytes in chunks of %d, want %d", len(got), chunk, len(want))
		}
	}
	if refused == 0 {
		t.Error("the ring was never full")
	}
}

// TestRingFull fills a ring to the last byte.
func TestRingFull(t *testing.T) {
	r := newRing(1024)
	b := blockOf(0, 64-len(blockOf(0, 0)))
	for i := range 16 {
		if len(b) != 64 || !r.put(b) {
			t.Fatalf("block %d of %d bytes found no room", i, len(b))
		}
	}
	if r.put(blockOf(1, 0)) {
		t.Error("a block more than there is room for")
	}
	buffer := make([]byte, 64)
	if len(r.take(buffer, 1)) != 64 || !r.put(b) || r.put(b) {
		t.Error("one taken is not room for one")
	}
}

// TestRingBetweenGoroutines sends numbers through a small ring, for the race detector above all.
func TestRingBetweenGoroutines(t *testing.T) {
	const count = 20_000
	r := newRing(4096)
	var group sync.WaitGroup
	group.Go(func() {
		for i := range uint32(count) {
			for b := blockOf(i, int(i%200)); !r.put(b); {
				goruntime.Gosched()
			}
		}
	})
	buffer := make([]byte, 512)
	for want := uint32(0); want < count; {
		for b := r.take(buffer, 512); len(b) > 0; b = b[pcapng.BlockLength(b):] {
			if got := binary.LittleEndian.Uint32(b[28:]); got != want || pcapng.BlockLength(b) != len(blockOf(want, int(want%200))) {
				t.Fatalf("block %d came as %d", want, got)
			}
			want++
		}
		goruntime.Gosched()
	}
	group.Wait()
}
