package pull

import "errors"

// The errors of a producer.
var (
	// ErrCancelled: the consumer wants no more.
	ErrCancelled = errors.New("pull: cancelled by its consumer")
	// ErrEnded: an item after the end.
	ErrEnded = errors.New("pull: it has ended")
	// ErrTaken: the items are another consumer's.
	ErrTaken = errors.New("pull: it has another consumer")
	// ErrPosition: the items before a position were let go of, or the position is beyond all items.
	ErrPosition = errors.New("pull: no such position")
)

// Producer is the producer's half: the items that its consumer does not have yet, as far as is known. NewProducer makes one. It has one consumer, the first that pulls.
type Producer[T any] struct {
	items    []T // a ring
	head     int // the oldest's place
	count    int
	first    uint64 // its position
	consumer uint64 // 0 = nobody has pulled
	ended    bool
	gone     bool // the consumer is
}

// NewProducer makes one that holds at most so many items, at least one.
func NewProducer[T any](capacity int) *Producer[T] {
	return &Producer[T]{items: make([]T, max(capacity, 1))}
}

// Put adds an item. It is false when there is no room: until the consumer has taken some, the producer must wait.
func (p *Producer[T]) Put(item T) (ok bool, err error) {
	switch {
	case p.gone:
		return false, ErrCancelled
	case p.ended:
		return false, ErrEnded
	case p.count == len(p.items):
		return false, nil
	}
	p.items[(p.head+p.count)%len(p.items)] = item
	p.count++
	return true, nil
}

// End says that no more items come.
func (p *Producer[T]) End() { p.ended = true }

// Held is how many items it holds: those that wait, and those that were given and may have to be given again.
func (p *Producer[T]) Held() int { return p.count }

// Pull lets go of all items before the position, and returns how many there are for the consumer, named by a number that is not zero: at most n (rules 1.1, 1.2). They are read by
// At. Last says that after these there are none. Neither items nor last: the pull has to wait. The same pull gives the same items, and those that came meanwhile.
//
// Who asks for nothing gets an error (rule 3.9), and so does everybody but the first consumer.
func (p *Producer[T]) Pull(consumer, position, n uint64) (count int, last bool, err error) {
	switch {
	case consumer == 0 || p.consumer != 0 && p.consumer != consumer:
		return 0, false, ErrTaken
	case p.gone:
		return 0, false, ErrCancelled
	case n == 0:
		return 0, false, ErrDemand
	case position < p.first || position-p.first > uint64(p.count):
		return 0, false, ErrPosition
	}
	p.consumer = consumer
	for ; p.first < position; p.first++ {
		p.drop()
	}
	count = int(min(n, uint64(p.count)))
	return count, p.ended && count == p.count, nil
}

// At is an item that the last Pull counted.
func (p *Producer[T]) At(i int) T { return p.items[(p.head+i)%len(p.items)] }

// Cancel ends it: what it holds is dropped. Only its consumer may, or somebody who would be its first. Once more it does nothing (rule 3.7).
func (p *Producer[T]) Cancel(consumer uint64) error {
	if consumer == 0 || p.consumer != 0 && p.consumer != consumer {
		return ErrTaken
	}
	p.consumer, p.gone = consumer, true
	for p.count > 0 {
		p.drop()
	}
	return nil
}

// drop lets go of the oldest item.
func (p *Producer[T]) drop() {
	var none T
	p.items[p.head] = none // what it points to must not live on
	p.head = (p.head + 1) % len(p.items)
	p.count--
}
