//go:build linux

package rawudp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const (
	// PayloadMin is what the client itself needs of a payload: slot, generation, and the time it was sent.
	PayloadMin = 16
	// lossTimeout is when an unanswered datagram counts as lost and its slot is used again.
	lossTimeout = 100 * time.Millisecond
)

// RunConfig describes a closed-loop run.
type RunConfig struct {
	Outstanding  int           // datagrams in flight, at least 1
	PayloadBytes int           // from PayloadMin to PayloadMax
	Warmup       time.Duration // not measured
	Duration     time.Duration // measured
}

// Result is what a run measured.
type Result struct {
	Count      int64                   // echoes within Duration
	Lost       int64                   // datagrams whose echo did not come within 100 ms
	Elapsed    time.Duration           // what Duration came out as
	RoundTrips *hdrhistogram.Histogram // in ns
}

// PerSecond is the rate of echoes.
func (r *Result) PerSecond() float64 { return float64(r.Count) / r.Elapsed.Seconds() }

// Client keeps a number of datagrams in flight to one server.
type Client struct {
	fd      int
	in, out *batch
}

// Dial connects a socket to a server. Nothing is sent yet.
func Dial(server netip.AddrPort) (*Client, error) {
	fd, err := openSocket()
	if err != nil {
		return nil, fmt.Errorf("rawudp: dial %v: %w", server, err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(server.Port()), Addr: server.Addr().As4()}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("rawudp: dial %v: connect: %w", server, err)
	}
	return &Client{fd: fd, in: newBatch(false), out: newBatch(false)}, nil
}

// Close closes the socket.
func (c *Client) Close() error { return unix.Close(c.fd) }

// run is the state of one Run.
type run struct {
	client      *Client
	cfg         RunConfig
	generations []uint32     // of each slot: echoes of a datagram that was given up are ignored
	sentAt      []clock.Time // of each slot
	ready       []uint32     // slots to send from
	result      Result
	from        clock.Time // when measuring starts
}

// Run sends, and sends again for each echo, until the time is over.
func (c *Client) Run(cfg RunConfig) (*Result, error) {
	if cfg.Outstanding < 1 || cfg.PayloadBytes < PayloadMin || cfg.PayloadBytes > PayloadMax || cfg.Duration <= 0 {
		return nil, fmt.Errorf("rawudp: run: %+v: needs at least 1 outstanding, %d to %d bytes, and a duration",
			cfg, PayloadMin, PayloadMax)
	}
	r := &run{
		client: c, cfg: cfg,
		generations: make([]uint32, cfg.Outstanding),
		sentAt:      make([]clock.Time, cfg.Outstanding),
		ready:       make([]uint32, 0, cfg.Outstanding),
		result:      Result{RoundTrips: hdrhistogram.New(1, int64(10*time.Second), 3)},
	}
	for slot := range cfg.Outstanding {
		r.ready = append(r.ready, uint32(slot))
	}
	return r.loop()
}

// loop alternates between sending what is ready and receiving.
func (r *run) loop() (*Result, error) {
	now := clock.Now()
	r.from = now.Add(r.cfg.Warmup)
	end := r.from.Add(r.cfg.Duration)
	sweep := now.Add(lossTimeout)
	for empty := 0; now.Before(end); now = clock.Now() {
		r.send(now)
		got, errno := r.client.in.receive(r.client.fd, batchMax)
		if errno == 0 {
			empty = 0
			r.collect(got)
			continue
		}
		if errno != unix.EAGAIN && errno != unix.EINTR {
			return nil, fmt.Errorf("rawudp: run: recvmmsg: %w", errors.Join(errno, r.explain(errno)))
		}
		if empty++; empty%yieldEvery == 0 {
			runtime.Gosched()
		}
		if now.After(sweep) {
			r.giveUp(now)
			sweep = now.Add(lossTimeout)
		}
	}
	r.result.Elapsed = now.Sub(r.from)
	return &r.result, nil
}

// explain adds the cure to the error that everybody meets once.
func (r *run) explain(errno unix.Errno) error {
	if errno == unix.ECONNREFUSED {
		return errors.New("is the server running?")
	}
	return nil
}

// send transmits from all slots that are ready.
func (r *run) send(now clock.Time) {
	for len(r.ready) > 0 {
		count := min(len(r.ready), batchMax)
		slots := r.ready[len(r.ready)-count:]
		r.ready = r.ready[:len(r.ready)-count]
		out := r.client.out
		for i, slot := range slots {
			r.generations[slot]++
			r.sentAt[slot] = now
			payload := out.payloads[i][:r.cfg.PayloadBytes]
			binary.LittleEndian.PutUint32(payload, slot)
			binary.LittleEndian.PutUint32(payload[4:], r.generations[slot])
			binary.LittleEndian.PutUint64(payload[8:], uint64(now))
			out.vectors[i].SetLen(len(payload))
		}
		out.send(r.client.fd, count) // what is not sent is given up after lossTimeout
	}
}

// collect takes echoes, and makes their slots ready.
func (r *run) collect(got int) {
	now := clock.Now()
	in := r.client.in
	for i := range got {
		if int(in.headers[i].Len) != r.cfg.PayloadBytes {
			continue
		}
		payload := in.payloads[i][:]
		slot := binary.LittleEndian.Uint32(payload)
		if slot >= uint32(len(r.generations)) || binary.LittleEndian.Uint32(payload[4:]) != r.generations[slot] ||
			r.sentAt[slot].IsZero() {
			continue // not ours, given up, or a duplicate
		}
		sent := r.sentAt[slot]
		r.sentAt[slot] = 0
		r.ready = append(r.ready, slot)
		if !now.Before(r.from) {
			r.result.Count++
			_ = r.result.RoundTrips.RecordValue(min(int64(now.Sub(sent)), int64(10*time.Second))) // clamped to its range
		}
	}
}

// giveUp makes the slots ready whose echo is overdue.
func (r *run) giveUp(now clock.Time) {
	for slot, sent := range r.sentAt {
		if !sent.IsZero() && now.Sub(sent) > lossTimeout {
			r.sentAt[slot] = 0
			r.ready = append(r.ready, uint32(slot))
			r.result.Lost++
		}
	}
}
