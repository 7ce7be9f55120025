package handover

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// TestLaneAgainstTwin puts, takes, releases and takes back at random, and compares each answer with queues that say the same in the plainest way.
func TestLaneAgainstTwin(t *testing.T) {
	random := seedtest.Rand(t)
	for _, size := range []int{1, 2, 16} {
		l := newLane(size)
		var there, taken, done []uint64 // tokens: put, at the receiver, on their way home
		next, laps := uint64(0), 0
		for range 20_000 {
			switch random.IntN(4) {
			case 0:
				away := len(there) + len(taken) + len(done)
				if l.full() != (away == size) {
					t.Fatalf("full is %v with %d of %d away", l.full(), away, size)
				}
				if away < size {
					l.send(&dispatcher.Datagram{Arrival: 7, Payload: []byte{byte(next)}}, next)
					there = append(there, next)
					next++
				}
			case 1:
				if l.waiting() != (len(there) > 0) {
					t.Fatalf("waiting is %v with %d there", l.waiting(), len(there))
				}
				batch := make([]dispatcher.Datagram, random.IntN(size+2))
				n := l.take(batch)
				if n != min(len(batch), len(there)) {
					t.Fatalf("took %d of %d for %d", n, len(there), len(batch))
				}
				for i, d := range batch[:n] {
					if d.Payload[0] != byte(there[i]) || d.Arrival != 7 {
						t.Fatalf("took %v for packet %d", d, there[i])
					}
				}
				taken, there = append(taken, there[:n]...), there[n:]
			case 2:
				l.release()
				done, taken = append(done, taken...), nil
			case 3:
				token, ok := l.back()
				if ok != (len(done) > 0) || ok && token != done[0] {
					t.Fatalf("back came %d, %v; on their way are %v", token, ok, done)
				}
				if ok {
					done = done[1:]
					laps++
				}
			}
		}
		if laps < 10*size {
			t.Errorf("%d packets came back over %d slots: too few to wrap", laps, size)
		}
	}
}

// TestLaneBetweenGoroutines has the two ends in two goroutines. The sender writes each buffer anew once it is home, so that the race detector, and the
// receiver's look at every byte, would see one that went home too early.
func TestLaneBetweenGoroutines(t *testing.T) {
	const packets, buffers = 200_000, 16
	l := newLane(buffers)
	go func() {
		memory := make([][8]byte, buffers)
		free := make([]uint64, buffers)
		for i := range free {
			free[i] = uint64(i)
		}
		for number := uint64(0); number < packets; {
			for token, ok := l.back(); ok; token, ok = l.back() {
				free = append(free, token)
			}
			if l.full() {
				runtime.Gosched()
				continue
			}
			token := free[len(free)-1]
			free = free[:len(free)-1]
			binary.BigEndian.PutUint64(memory[token][:], number)
			l.send(&dispatcher.Datagram{Payload: memory[token][:]}, token)
			number++
		}
	}()
	batch := make([]dispatcher.Datagram, 5)
	for number := uint64(0); number < packets; {
		l.release()
		n := l.take(batch)
		if n == 0 {
			runtime.Gosched()
		}
		for _, d := range batch[:n] {
			if got := binary.BigEndian.Uint64(d.Payload); got != number {
				t.Fatalf("packet %d is %d", number, got)
			}
			number++
		}
	}
}

// TestLaneSlots bounds what can be away from one dispatcher, and leaves each pair some room.
func TestLaneSlots(t *testing.T) {
	for count := 2; count <= 64; count++ {
		slots := laneSlots(count)
		if slots&(slots-1) != 0 || slots < 16 || slots*(count-1) > AwayMax {
			t.Errorf("%d slots between two of %d dispatchers", slots, count)
		}
	}
}
