package runtime

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/stillwater-rpc/stillwater/credit/pull"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// Feed is the producer's side of a pull: items that one consumer takes at its own pace, by [Session.Pull]. It holds as many as it was made for; who puts more in waits until the
// consumer has taken some, so a slow consumer slows its producer down, and neither loses an item nor fills a memory. Its methods may be called by any goroutine.
//
// Register [Feed.Serve] as the handler of a method. A pull that finds nothing waits in the handler, and counts among the workers until then.
type Feed struct {
	mu      sync.Mutex
	items   *pull.Producer[[]byte]
	changed chan struct{} // closed, and replaced, whenever there is something new for those who wait
}

// NewFeed makes a feed that holds at most so many items, at least one: those that wait, and those that were sent and may have to be sent again.
func NewFeed(capacity int) *Feed {
	return &Feed{items: pull.NewProducer[[]byte](capacity), changed: make(chan struct{})}
}

// The errors of a feed and of its consumer.
var (
	ErrFeedCancelled = pull.ErrCancelled // the consumer wants no more
	ErrFeedEnded     = pull.ErrEnded     // an item after the end
	ErrNoDemand      = pull.ErrDemand    // nothing is asked for
)

// FeedItemMax is the largest item in bytes: it fits into a packet of any endpoint, beside what is around it.
const FeedItemMax = 1024

// Put adds an item, which is the feed's from then on. It blocks while there is no room, until the context ends. The error is ErrFeedCancelled when the consumer wants no more,
// ErrFeedEnded after End, and ErrTooLarge for an item of more than FeedItemMax.
func (f *Feed) Put(ctx context.Context, item []byte) error {
	if len(item) > FeedItemMax {
		return ErrTooLarge
	}
	for {
		f.mu.Lock()
		ok, err := f.items.Put(item)
		changed := f.changed
		if ok {
			f.tell()
		}
		f.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// End says that no more items come. The consumer gets those that are there, and then io.EOF.
func (f *Feed) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items.End()
	f.tell()
}

// tell wakes up who waits.
func (f *Feed) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// A pull is 25 bytes: what is wanted, who the consumer is, from which position, how many. Its answer begins with a byte, and then has items, each with its length before it.
const (
	pullBytes  = 25
	pullItems  = 1 // what is wanted: items,
	pullCancel = 2 // or no more
	pullMore   = 0 // how an answer begins: there may be more,
	pullLast   = 1 // or these were the last
)

var errPull = errors.New("not a pull")

// Serve answers pulls: it is a [Handler].
func (f *Feed) Serve(ctx context.Context, req *Request, reply []byte) ([]byte, error) {
	if len(req.Payload) != pullBytes {
		return nil, errPull
	}
	consumer, position, n := binary.BigEndian.Uint64(req.Payload[1:]), binary.BigEndian.Uint64(req.Payload[9:]), binary.BigEndian.Uint64(req.Payload[17:])
	switch req.Payload[0] {
	case pullItems:
		return f.serve(ctx, req, consumer, position, n, reply)
	case pullCancel:
		f.mu.Lock()
		defer f.mu.Unlock()
		if err := f.items.Cancel(consumer); err != nil {
			return nil, err
		}
		f.tell()
		return reply, nil
	}
	return nil, errPull
}

// serve waits until there is something for a pull.
func (f *Feed) serve(ctx context.Context, req *Request, consumer, position, n uint64, reply []byte) ([]byte, error) {
	room := req.server.ep.replyMax
	for {
		f.mu.Lock()
		held := f.items.Held()
		count, last, err := f.items.Pull(consumer, position, n)
		if f.items.Held() < held {
			f.tell()
		}
		changed := f.changed
		if count > 0 || last {
			reply = f.pack(reply, count, last, room)
		}
		f.mu.Unlock()
		if err != nil || count > 0 || last {
			return reply, err
		}
		since := clock.Now()
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		req.Idle(clock.Now().Sub(since))
		if err != nil {
			return nil, err
		}
	}
}

// pack appends the answer: as many of the items as there is room for.
func (f *Feed) pack(reply []byte, count int, last bool, room int) []byte {
	begin := len(reply)
	reply = append(reply, pullMore)
	for i := range count {
		item := f.items.At(i)
		if len(reply)-begin+binary.MaxVarintLen32+len(item) > room {
			return reply
		}
		reply = binary.AppendUvarint(reply, uint64(len(item)))
		reply = append(reply, item...)
	}
	if last {
		reply[begin] = pullLast
	}
	return reply
}
