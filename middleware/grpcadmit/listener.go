package grpcadmit

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/middleware"
)

// Listener has connections decide about requests before gRPC sees them; give it to grpc.Server.Serve in place of l. It is optional, and for plain TCP: with TLS between gRPC and the
// network it cannot see requests, so leave it out there. It needs [Options].
//
// It does two things that the tap handle cannot. A refusal takes less than a microsecond, instead of a quarter of what a small call takes. And it knows how long each request has
// lain in its socket, about: a server that computes reads its sockets between two rounds of its handlers, and after a round, or a stall, that took long, the oldest of
// what it finds is not worth answering any more while the newest is. What is read at once came after the connection was last read empty, and in its order, so what stands
// half-way came at half of the time.
func Listener(c *middleware.Control, l net.Listener) net.Listener { return listener{l, c} }

type listener struct {
	net.Listener
	control *middleware.Control
}

func (l listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, control: l.control, front: newFront(l.control), to: l.control.Now()}
	c.address = &address{inner.LocalAddr(), c}
	return c, nil
}

// readBytes is as much as gRPC reads at once by itself.
const readBytes = 32 << 10

// conn is a connection with a front. One goroutine reads, and the tap handle is called by it.
type conn struct {
	net.Conn
	control  *middleware.Control
	address  *address
	front    *front
	raw      []byte     // as read
	clean    []byte     // what gRPC is to see
	given    int        // of that
	from, to clock.Time // what was read last came between them
	more     bool       // the buffer was full: from stays

	mu      sync.Mutex // of what is written
	frames  boundary
	replies []byte // to be written between two frames
}

// address is how the tap handle finds the connection: gRPC hands it through as part of the peer.
type address struct {
	net.Addr
	conn *conn
}

// LocalAddr is the address of this end.
func (c *conn) LocalAddr() net.Addr { return c.address }

// Read returns what is not refused here.
func (c *conn) Read(b []byte) (int, error) {
	if c.given == len(c.clean) {
		c.front.settle()
		c.clean, c.given = c.clean[:0], 0
	}
	for len(c.clean) == 0 {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.clean[c.given:])
	c.given += n
	return n, nil
}

// Close closes it.
func (c *conn) Close() error {
	c.front.end()
	return c.Conn.Close()
}

// fill reads once.
func (c *conn) fill() error {
	if c.raw == nil {
		c.raw = make([]byte, 0, readBytes)
	}
	n, err := c.Conn.Read(c.raw[len(c.raw):cap(c.raw)])
	if err != nil {
		return err
	}
	c.raw = c.raw[:len(c.raw)+n]
	if !c.more {
		c.from = c.to
	}
	c.to, c.more = c.control.Now(), len(c.raw) == cap(c.raw)
	rest, clean := c.front.filter(c.clean, c.raw, func(part float64) clock.Time {
		return c.from.Add(time.Duration(part * float64(c.to.Sub(c.from))))
	})
	c.clean = clean
	c.raw = c.raw[:copy(c.raw[:cap(c.raw)], rest)]
	if replies := c.front.send(); len(replies) > 0 {
		return c.reply(replies)
	}
	return nil
}

// reply writes frames of ours, or has the writer do it once its frame is over.
func (c *conn) reply(frames []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.frames.between() {
		c.replies = append(c.replies, frames...)
		return nil
	}
	_, err := c.Conn.Write(frames)
	return err
}

// Write writes what gRPC says, and what waited for the end of its frame.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.Conn.Write(b)
	c.frames.write(b[:n])
	if err == nil && len(c.replies) > 0 && c.frames.between() {
		_, err = c.Conn.Write(c.replies)
		c.replies = c.replies[:0]
	}
	return n, err
}

// connOf is nil if the listener is another one.
func connOf(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.LocalAddr.(*address); ok {
			return a.conn
		}
	}
	return nil
}
