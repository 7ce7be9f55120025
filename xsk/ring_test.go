//go:build linux

package xsk_test

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest"
)

const ringSize = 8

// nearWrap starts the indices so that they pass 2^32 early in a test.
const nearWrap = math.MaxUint32 - 2*ringSize - 3

// TestProducerAgainstTwin puts and publishes at random while the kernel's end pops at random; a slice says what must come.
func TestProducerAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	kernel := xsktest.NewRing[frame.Addr](ringSize, nearWrap)
	ring := xsk.NewProducer(kernel.Memory)
	var hidden, published []frame.Addr // put and not published; published and not popped
	for step := range 50000 {
		switch random.IntN(3) {
		case 0:
			want := uint32(random.IntN(ringSize + 2))
			free := uint32(ringSize - len(hidden) - len(published))
			granted := ring.Room(want)
			// The private copy may be old, but then it is renewed before a grant falls short.
			if granted != min(want, free) {
				t.Fatalf("step %d: room for %d of %d, want %d", step, granted, want, min(want, free))
			}
			values := make([]frame.Addr, granted)
			for i := range values {
				values[i] = frame.Addr(random.Uint64())
			}
			if random.IntN(2) == 0 {
				ring.PutAll(values)
			} else {
				for _, value := range values {
					ring.Put(value)
				}
			}
			hidden = append(hidden, values...)
		case 1:
			ring.Publish()
			published = append(published, hidden...)
			hidden = nil
		case 2:
			value, ok := kernel.Pop()
			if ok != (len(published) > 0) || ok && value != published[0] {
				t.Fatalf("step %d: the kernel got %d, %v; published are %d", step, value, ok, published)
			}
			if ok {
				published = published[1:]
			}
		}
		if got, want := ring.Unread(), uint32(len(hidden)+len(published)); got != want {
			t.Fatalf("step %d: %d unread, want %d", step, got, want)
		}
	}
}

// TestConsumerAgainstTwin is the other direction: the kernel's end pushes at random, ours reads and releases at random.
func TestConsumerAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	kernel := xsktest.NewRing[frame.Desc](ringSize, nearWrap)
	ring := xsk.NewConsumer(kernel.Memory)
	var unread []frame.Desc
	held := 0 // read and not released: their slots are not the kernel's yet
	for step := range 50000 {
		switch random.IntN(3) {
		case 0:
			value := frame.Desc{Addr: frame.Addr(random.Uint64()), Len: random.Uint32(), Options: random.Uint32()}
			ok := kernel.Push(value)
			if ok != (len(unread)+held < ringSize) {
				t.Fatalf("step %d: push %v with %d unread and %d held", step, ok, len(unread), held)
			}
			if ok {
				unread = append(unread, value)
			}
		case 1:
			want := uint32(1 + random.IntN(ringSize+1))
			granted := ring.Available(want)
			if granted > want || granted > uint32(len(unread)) || granted == 0 && len(unread) > 0 {
				t.Fatalf("step %d: %d available of %d, unread are %d", step, granted, want, len(unread))
			}
			values := make([]frame.Desc, granted)
			if random.IntN(2) == 0 {
				ring.GetAll(values)
			} else {
				for i := range values {
					values[i] = ring.Get()
				}
			}
			if !slices.Equal(values, unread[:granted]) {
				t.Fatalf("step %d: read %v, want %v", step, values, unread[:granted])
			}
			unread, held = unread[granted:], held+int(granted)
		case 2:
			ring.Release()
			held = 0
		}
	}
}

// TestRingFullAndEmpty walks a ring from empty to full and back, across the wrap of its indices.
func TestRingFullAndEmpty(t *testing.T) {
	kernel := xsktest.NewRing[frame.Addr](ringSize, nearWrap)
	producer := xsk.NewProducer(kernel.Memory)
	for range 4 {
		if got := producer.Room(ringSize + 1); got != ringSize {
			t.Fatalf("an empty ring has room for %d", got)
		}
		for i := range ringSize {
			producer.Put(frame.Addr(i))
		}
		if kernel.Len() != 0 {
			t.Fatal("the kernel sees what was not published")
		}
		producer.Publish()
		if producer.Room(1) != 0 || kernel.Len() != ringSize {
			t.Fatalf("full ring: room %d, length %d", producer.Room(1), kernel.Len())
		}
		for i := range ringSize {
			if value, ok := kernel.Pop(); !ok || value != frame.Addr(i) {
				t.Fatalf("popped %d, %v, want %d", value, ok, i)
			}
		}
	}
	consumer := xsk.NewConsumer(kernel.Memory)
	if consumer.Available(1) != 0 {
		t.Error("an empty ring has something to read")
	}
}

// TestRingPublishes passes entries between goroutines, so that the race detector judges the order of write and publication.
func TestRingPublishes(t *testing.T) {
	kernel := xsktest.NewRing[frame.Addr](ringSize, nearWrap)
	producer := xsk.NewProducer(kernel.Memory)
	const total = 20000
	done := make(chan []frame.Addr)
	go func() {
		var got []frame.Addr
		for len(got) < total {
			if value, ok := kernel.Pop(); ok {
				got = append(got, value)
			} else {
				runtime.Gosched()
			}
		}
		done <- got
	}()
	var want []frame.Addr
	for len(want) < total {
		granted := producer.Room(min(ringSize, uint32(total-len(want))))
		if granted == 0 {
			runtime.Gosched()
		}
		for range granted {
			value := frame.Addr(len(want) * 3)
			producer.Put(value)
			want = append(want, value)
		}
		producer.Publish()
	}
	if got := <-done; !slices.Equal(got, want) {
		t.Error("entries were lost or changed")
	}
}
