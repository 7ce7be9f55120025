package pull

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// ask is a pull under way or waiting at the producer, or with its answer on the way back.
type ask struct {
	consumer, position, n uint64
	answered              bool
	items                 []int
	last                  bool
}

// story is a consumer and a producer with a bad network between them. Items are the numbers from 0, so what arrives says whether one was lost or made.
type story struct {
	t         *testing.T
	rng       *rand.Rand
	consumer  Consumer
	producer  *Producer[int]
	under     []*ask
	requested uint64 // in all
	put, got  int
	total     int // to be put before the end
}

const me, stranger = 7, 8

func (s *story) step() {
	switch s.rng.IntN(8) {
	case 0:
		n := int64(s.rng.IntN(5)) - 1
		err := s.consumer.Request(n)
		if (err != nil) != (n <= 0) {
			s.t.Fatalf("request(%d): %v", n, err)
		}
		if n > 0 && !s.consumer.Over() {
			s.requested += uint64(n)
		}
	case 1, 2:
		s.produce()
	case 3:
		s.pull()
	case 4:
		s.under = append(s.under, &ask{consumer: stranger, position: s.consumer.Position(), n: 5})
	default:
		s.move()
	}
	if uint64(s.got)+s.consumer.Wanted() != s.requested && !s.consumer.Over() {
		s.t.Fatalf("%d arrived and %d wanted, of %d", s.got, s.consumer.Wanted(), s.requested)
	}
}

// produce puts an item, if there is room.
func (s *story) produce() {
	if s.put == s.total {
		s.producer.End()
		if _, err := s.producer.Put(s.put); !errors.Is(err, ErrEnded) && !errors.Is(err, ErrCancelled) {
			s.t.Fatalf("after the end: %v", err)
		}
		return
	}
	full := s.producer.Held() == cap(s.producer.items)
	ok, err := s.producer.Put(s.put)
	if err == nil && ok == full {
		s.t.Fatalf("put: %v, full %v", ok, full)
	}
	if ok {
		s.put++
	}
}

// pull sends what the consumer wants, now and then of an earlier time.
func (s *story) pull() {
	if position, n, ok := s.consumer.Pull(); ok {
		s.under = append(s.under, &ask{consumer: me, position: position, n: n})
	}
}

// move lets something under way arrive, in any order, not at all, or twice.
func (s *story) move() {
	if len(s.under) == 0 {
		return
	}
	i := s.rng.IntN(len(s.under))
	a := s.under[i]
	if s.rng.IntN(4) > 0 { // else it arrives once more later
		s.under = append(s.under[:i], s.under[i+1:]...)
	}
	if s.rng.IntN(4) == 0 {
		return // lost
	}
	if a.answered {
		s.receive(a)
		return
	}
	count, last, err := s.producer.Pull(a.consumer, a.position, a.n)
	switch {
	case err != nil:
		return
	case count == 0 && !last:
		s.under = append(s.under, a) // it waits
		return
	case uint64(count) > a.n:
		s.t.Fatalf("%d items for %d", count, a.n)
	}
	b := &ask{consumer: a.consumer, position: a.position, answered: true, last: last}
	for j := range count {
		b.items = append(b.items, s.producer.At(j))
	}
	s.under = append(s.under, b)
}

func (s *story) receive(a *ask) {
	if a.consumer != me {
		return
	}
	over := s.consumer.Over()
	fresh, err := s.consumer.Received(a.position, len(a.items), a.last)
	if err != nil || over && fresh > 0 {
		s.t.Fatalf("%d of %d items at %d, over %v: %v", fresh, len(a.items), a.position, over, err)
	}
	for _, item := range a.items[len(a.items)-fresh:] {
		if item != s.got {
			s.t.Fatalf("item %d arrived instead of %d", item, s.got)
		}
		s.got++
	}
	if uint64(s.got) > s.requested {
		s.t.Fatalf("%d items arrived of %d that were asked for", s.got, s.requested)
	}
	if !over && s.consumer.Over() && s.got != s.total {
		s.t.Fatalf("it ended after %d items of %d", s.got, s.total)
	}
}

// Rules 1.1, 3.9 and 3.17, and no item lost or made, whatever the network does; in the end, all.
func TestNeverMoreThanAskedFor(t *testing.T) {
	rng := seedtest.Rand(t)
	alone := 0
	for range 300 {
		s := &story{t: t, rng: rng, producer: NewProducer[int](1 + rng.IntN(8)), total: rng.IntN(60)}
		for range 400 {
			s.step()
		}
		if s.producer.consumer == stranger {
			if s.got != 0 {
				t.Fatal("items of another consumer arrived")
			}
			alone++
			continue
		}
		s.finish()
	}
	if alone > 250 {
		t.Fatalf("in %d of 300 stories the stranger was first", alone)
	}
}

// finish asks for all, over a network that loses nothing, and expects the rest and the end.
func (s *story) finish() {
	s.under = nil
	if err := s.consumer.Request(1000); err != nil {
		s.t.Fatal(err)
	}
	if !s.consumer.Over() {
		s.requested += 1000
	}
	for range 1000 {
		s.produce()
		position, n, ok := s.consumer.Pull()
		if !ok {
			break
		}
		count, last, err := s.producer.Pull(me, position, n)
		if err != nil {
			s.t.Fatal(err)
		}
		a := &ask{consumer: me, position: position, last: last}
		for i := range count {
			a.items = append(a.items, s.producer.At(i))
		}
		s.receive(a)
	}
	if s.got != s.total || !s.consumer.Over() || s.consumer.Wanted() != 0 {
		s.t.Fatalf("%d of %d, over %v, wanted %d", s.got, s.total, s.consumer.Over(), s.consumer.Wanted())
	}
}

// Cancelled at any moment, nothing arrives any more, and the producer drops what it holds as soon as it hears of it.
func TestCancel(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 200 {
		s := &story{t: t, rng: rng, producer: NewProducer[int](4), total: 1000}
		s.producer.consumer = me
		for range rng.IntN(200) {
			s.step()
		}
		s.consumer.Cancel()
		s.consumer.Cancel()
		got := s.got
		for range 100 {
			s.step()
		}
		if _, _, ok := s.consumer.Pull(); ok || s.got != got {
			t.Fatal("it goes on")
		}
		if err := s.producer.Cancel(stranger); !errors.Is(err, ErrTaken) {
			t.Fatalf("a stranger cancels: %v", err)
		}
		for range 2 {
			if err := s.producer.Cancel(me); err != nil || s.producer.Held() != 0 {
				t.Fatalf("not cancelled: %v", err)
			}
		}
		if ok, err := s.producer.Put(0); ok || !errors.Is(err, ErrCancelled) {
			t.Fatalf("%v, %v", ok, err)
		}
		if _, _, err := s.producer.Pull(me, s.consumer.Position(), 1); !errors.Is(err, ErrCancelled) {
			t.Fatal(err)
		}
	}
}

func TestUnbounded(t *testing.T) {
	var c Consumer
	for range 3 {
		if err := c.Request(Unbounded); err != nil {
			t.Fatal(err)
		}
	}
	if _, n, ok := c.Pull(); !ok || n != Unbounded {
		t.Errorf("%d, %v", n, ok)
	}
	if fresh, err := c.Received(0, 1000, false); fresh != 1000 || err != nil || c.Wanted() != Unbounded {
		t.Errorf("%d, %v, wanted %d", fresh, err, c.Wanted())
	}
}

// What a producer may not say, and a consumer may not ask for.
func TestFaults(t *testing.T) {
	var c Consumer
	_ = c.Request(2)
	if fresh, err := c.Received(0, 3, false); fresh != 0 || !errors.Is(err, ErrExcess) || c.Position() != 0 || c.Wanted() != 2 {
		t.Errorf("three for two: %d, %v", fresh, err)
	}
	if fresh, err := c.Received(1, 1, false); fresh != 0 || err != nil || c.Position() != 0 {
		t.Errorf("from a position that was never asked from: %d, %v", fresh, err)
	}
	p := NewProducer[int](0)
	if ok, err := p.Put(5); !ok || err != nil {
		t.Fatal("no room for one")
	}
	for _, x := range []struct {
		consumer, position, n uint64
		want                  error
	}{
		{0, 0, 1, ErrTaken}, {me, 0, 0, ErrDemand}, {me, 2, 1, ErrPosition}, {me, 1 << 63, 1, ErrPosition}, {me, 1, 1, nil}, {me, 0, 1, ErrPosition}, {stranger, 1, 1, ErrTaken},
	} {
		if _, _, err := p.Pull(x.consumer, x.position, x.n); !errors.Is(err, x.want) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}
