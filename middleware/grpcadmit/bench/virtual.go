//go:build linux

package main

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/middleware"
)

// world is a server and its clients in one process, on a clock that is the CPU time that the server took, and goes on by itself where it is idle. So nobody who shares the
// CPUs shows in its figures, other than by the caches.
//
// Connections are memory. A goroutine plays the network poller: it runs when no other wants to, and wakes those whose connections have something. What the kernel would
// take for a read or a write is spun away; what the clients take is left out.
type world struct {
	mu       sync.Mutex
	left     time.Duration // CPU time that was not the server's
	jumped   time.Duration // idle time
	client   *client
	conns    []*pipe
	arrivals *workload.Arrivals
	closed   int // requests to keep outstanding, in a closed loop
	over     clock.Time
	accept   chan net.Conn
	close    sync.Once
	done     chan struct{}
	stopped  bool

	beatDue  clock.Time
	lateness time.Duration
}

const (
	syscallCost = 3 * time.Microsecond // of a read or a write of a loopback socket, about
	clockCost   = 300 * time.Nanosecond
	beat        = 100 * time.Microsecond
)

// cpuTime is what the process has taken.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// time is the clock; the mutex is held.
func (w *world) time() clock.Time { return clock.Time(time.Second + cpuTime() - w.left + w.jumped) }

// now is the clock of the middleware. What this one takes more than a real one is left out.
func (w *world) now() clock.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left += clockCost
	return w.time()
}

func (w *world) delay(now clock.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.lateness, now.Sub(w.beatDue))
}

func spinCPU(d time.Duration) {
	for end := cpuTime() + d; cpuTime() < end; {
	}
}

// clients does something that the server's clock does not see.
func (w *world) clients(do func(now clock.Time)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := cpuTime()
	do(w.time())
	w.left += cpuTime() - before
}

// arise has all requests arise that are due.
func (w *world) arise(now clock.Time) {
	if w.arrivals == nil {
		for w.client.outstanding < w.closed {
			w.client.issue(now)
		}
		return
	}
	for ; w.arrivals.Due() <= now; w.arrivals.Advance() {
		w.client.issue(w.arrivals.Due())
	}
}

// poll is the network poller.
func (w *world) poll() {
	defer close(w.done)
	for over := false; !over; runtime.Gosched() {
		w.clients(func(now clock.Time) {
			if w.client.outstanding == 0 && w.arrivals != nil {
				w.jumped += max(w.arrivals.Due().Sub(now), 0)
				now = max(now, w.arrivals.Due())
			}
			if now >= w.beatDue {
				w.lateness = now.Sub(w.beatDue)
				w.beatDue = now.Add(beat)
			}
			w.arise(now)
			for _, p := range w.conns {
				if p.parked && len(p.connection.out) > 0 {
					p.parked = false
					p.wake <- struct{}{}
				}
			}
			over = now >= w.over
		})
	}
}

// pipe is a server's end of a connection.
type pipe struct {
	w          *world
	connection *connection
	index      int
	parked     bool
	wake       chan struct{}
}

func (p *pipe) Read(b []byte) (n int, err error) {
	spinCPU(syscallCost)
	for {
		stopped := false
		p.w.clients(func(now clock.Time) {
			p.w.arise(now)
			out := &p.connection.out
			n = copy(b, *out)
			*out = append((*out)[:0], (*out)[n:]...)
			p.parked = n == 0
			stopped = p.w.stopped
		})
		switch {
		case stopped:
			return 0, io.EOF
		case n > 0:
			return n, nil
		}
		<-p.wake
	}
}

func (p *pipe) Write(b []byte) (n int, err error) {
	spinCPU(syscallCost)
	p.w.clients(func(clock.Time) {
		err = p.connection.parse(b, func(stream uint32, ok bool) { p.w.client.end(p.index, stream, ok) })
	})
	return len(b), err
}

func (p *pipe) Close() error        { return nil }
func (p *pipe) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (p *pipe) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2 + p.index}
}
func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

// The listener has all connections at once.
func (w *world) Accept() (net.Conn, error) {
	c, ok := <-w.accept
	if !ok {
		return nil, errors.New("closed")
	}
	return c, nil
}
func (w *world) Close() error   { w.close.Do(func() { close(w.accept) }); return nil }
func (w *world) Addr() net.Addr { return &net.TCPAddr{} }

// virtual offers a rate, or keeps so many requests outstanding, in a world of its own.
func virtual(o *options, arm string, rate float64, closed int, seed uint64) (f figures, err error) {
	w := &world{accept: make(chan net.Conn, o.conns), done: make(chan struct{}), closed: closed}
	w.client = &client{due: make([][]clock.Time, o.conns)}
	for i := range o.conns {
		connection, err := newConnection(-1)
		if err != nil {
			return f, err
		}
		w.client.connections = append(w.client.connections, connection)
		p := &pipe{w: w, connection: connection, index: i, wake: make(chan struct{}, 1)}
		w.conns = append(w.conns, p)
		w.accept <- p
	}
	own := *o
	own.serve = arm
	srv, listener, err := own.server(w, middleware.Config{Now: w.now, Delay: w.delay}, spinCPU)
	if err != nil {
		return f, err
	}
	runtime.GC()
	start := w.now()
	from, to := start.Add(warmup), start.Add(warmup+o.length)
	w.over, w.beatDue = to.Add(20*time.Millisecond), start
	if closed == 0 {
		w.arrivals = workload.NewArrivals(workload.Poisson, start, rate, seed)
	}
	m := newMeter(from, to)
	w.client.ended = func(due clock.Time, ok bool) { m.ended(due, w.time(), ok) }
	w.client.issued = func(due clock.Time) { m.issued(due, due) }
	stop, err := o.startProfile(arm)
	if err != nil {
		return f, err
	}
	go srv.Serve(listener)
	go w.poll()
	<-w.done
	stop()
	w.clients(func(clock.Time) {
		w.stopped = true
		for _, p := range w.conns {
			if p.parked {
				p.wake <- struct{}{}
			}
		}
	})
	srv.Stop()
	return m.figures(), nil
}
