package runtime

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"

	"github.com/stillwater-rpc/stillwater/credit/pull"
)

// Pull takes items from a [Feed] behind a method, never more of them than it has asked for. It is for one goroutine.
//
// Each step is an ordinary call, which waits at the server while there are no items. It is marked repeatable, since the same items come for the same pull: where one is lost or given
// up, the next Next gets them.
type Pull struct {
	session  *Session
	method   string
	id       uint64
	books    pull.Consumer
	payload  [pullBytes]byte
	reply    []byte
	rest     []byte // of the reply: items that Next has not returned yet
	canceled bool
}

// Pull begins to take items from a method of the server that is a Feed's. Nothing is sent before Next.
func (s *Session) Pull(method string) *Pull {
	return &Pull{session: s, method: method, id: rand.Uint64() | 1} // zero is nobody
}

// Unbounded is a demand without an end.
const Unbounded = pull.Unbounded

// Request says that there is room for n items more; it is ErrNoDemand for less than one. What adds up to Unbounded stays there.
func (p *Pull) Request(n int64) error { return p.books.Request(n) }

// Wanted is how many items were asked for and have not arrived.
func (p *Pull) Wanted() uint64 { return p.books.Wanted() }

var errFeed = errors.New("not the answer of a feed")

// Next returns the next item, which is valid until the next call of Next. It blocks until there is one, bounded by the context. It is io.EOF after the last, ErrFeedCancelled after
// Cancel, and ErrNoDemand when all that was asked for has been returned; any other error is that of a call, and Next may be called again.
func (p *Pull) Next(ctx context.Context) ([]byte, error) {
	for {
		switch {
		case p.canceled:
			return nil, ErrFeedCancelled
		case len(p.rest) > 0:
			var item []byte
			item, p.rest, _ = cutItem(p.rest)
			return item, nil
		}
		position, n, ok := p.books.Pull()
		switch {
		case p.books.Over():
			return nil, io.EOF
		case !ok:
			return nil, ErrNoDemand
		}
		if err := p.call(ctx, pullItems, position, n); err != nil {
			return nil, err
		}
		if err := p.take(position); err != nil {
			return nil, err
		}
	}
}

func (p *Pull) call(ctx context.Context, what byte, position, n uint64) (err error) {
	p.payload[0] = what
	binary.BigEndian.PutUint64(p.payload[1:], p.id)
	binary.BigEndian.PutUint64(p.payload[9:], position)
	binary.BigEndian.PutUint64(p.payload[17:], n)
	p.reply, err = p.session.Call(Repeatable(ctx), p.method, p.payload[:], p.reply[:0])
	return err
}

// take reads the answer to the pull at a position.
func (p *Pull) take(position uint64) error {
	if len(p.reply) == 0 || p.reply[0] > pullLast {
		return errFeed
	}
	count := 0
	for rest := p.reply[1:]; len(rest) > 0; count++ {
		var ok bool
		if _, rest, ok = cutItem(rest); !ok {
			return errFeed
		}
	}
	if count == 0 && p.reply[0] == pullMore { // it should have waited
		return errFeed
	}
	if _, err := p.books.Received(position, count, p.reply[0] == pullLast); err != nil {
		return err
	}
	p.rest = p.reply[1:]
	return nil
}

// cutItem takes the first item off.
func cutItem(b []byte) (item, rest []byte, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, nil, false
	}
	b = b[n:]
	return b[:length:length], b[length:], true
}

// Cancel ends it: Next returns no more items, and the server is told, so that its producer stops. If the error is not nil, it may not have been; Cancel may be called again.
// A Next that is blocked is ended by its own context.
func (p *Pull) Cancel(ctx context.Context) error {
	p.canceled = true
	p.books.Cancel()
	return p.call(ctx, pullCancel, 0, 0)
}
