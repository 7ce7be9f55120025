//go:build linux

package main

import (
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// client is a spinning loop over a few connections.
type client struct {
	connections []*connection
	due         [][]clock.Time // by connection and request; zero = has ended
	poll        int
	events      []unix.EpollEvent
	buffer      []byte
	outstanding int
	turn        int
	issued      func(due clock.Time)
	ended       func(due clock.Time, ok bool)
}

func newClient(address string, connections int) (*client, error) {
	poll, err := unix.EpollCreate1(0)
	if err != nil {
		return nil, err
	}
	c := &client{poll: poll, events: make([]unix.EpollEvent, connections), buffer: make([]byte, 1<<18), due: make([][]clock.Time, connections)}
	for i := range connections {
		conn, err := dial(address)
		if err != nil {
			return nil, err
		}
		c.connections = append(c.connections, conn)
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, conn.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *client) close() {
	for _, conn := range c.connections {
		unix.Close(conn.fd)
	}
	unix.Close(c.poll)
}

// issue sends a request that arose at due, on the next connection.
func (c *client) issue(due clock.Time) {
	c.turn = (c.turn + 1) % len(c.connections)
	c.connections[c.turn].request()
	c.due[c.turn] = append(c.due[c.turn], due)
	c.outstanding++
	c.issued(due)
}

// end notes how a request ended.
func (c *client) end(connection int, stream uint32, ok bool) {
	due := &c.due[connection][stream/2]
	if *due != 0 {
		c.outstanding--
		c.ended(*due, ok)
		*due = 0
	}
}

// step writes and reads what there is.
func (c *client) step() error {
	for _, conn := range c.connections {
		if err := conn.flush(); err != nil {
			return err
		}
	}
	n, err := unix.EpollWait(c.poll, c.events, 0)
	if err != nil && err != unix.EINTR {
		return err
	}
	for _, event := range c.events[:max(n, 0)] {
		i := int(event.Fd)
		err := c.connections[i].receive(c.buffer, func(stream uint32, ok bool) { c.end(i, stream, ok) })
		if err != nil {
			return err
		}
	}
	return nil
}

const warmup = 200 * time.Millisecond

// closedLoop keeps so many requests outstanding.
const closedLoop = 64

// capacity is a closed loop's rate.
func capacity(address string, o *options) (float64, error) {
	c, err := newClient(address, o.conns)
	if err != nil {
		return 0, err
	}
	defer c.close()
	start := clock.Now()
	m := newMeter(start.Add(warmup), start.Add(warmup+o.length/2))
	c.issued = func(due clock.Time) { m.issued(due, due) }
	c.ended = func(due clock.Time, ok bool) { m.ended(due, clock.Now(), ok) }
	for now := start; now < m.to; now = clock.Now() {
		for c.outstanding < closedLoop {
			c.issue(now)
		}
		if err := c.step(); err != nil {
			return 0, err
		}
	}
	return m.figures().Answered, nil
}

// openLoop offers a rate, and waits for nobody.
func openLoop(address string, o *options, rate float64, seed uint64) (figures, error) {
	c, err := newClient(address, o.conns)
	if err != nil {
		return figures{}, err
	}
	defer c.close()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	start := clock.Now()
	arrivals := workload.NewArrivals(workload.Poisson, start, rate, seed)
	m := newMeter(start.Add(warmup), start.Add(warmup+o.length))
	now := start
	c.issued = func(due clock.Time) { m.issued(due, now) }
	c.ended = func(due clock.Time, ok bool) { m.ended(due, clock.Now(), ok) }
	for ; now < m.to.Add(100*time.Millisecond); now = clock.Now() { // who is later than that is late by any limit
		for ; arrivals.Due() <= now; arrivals.Advance() {
			c.issue(arrivals.Due())
		}
		if err := c.step(); err != nil {
			return figures{}, err
		}
	}
	return m.figures(), nil
}
