//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// The parts of an ICMP echo (RFC 792); what follows its header is ours.
const (
	icmpEcho      = 8
	icmpReply     = 0
	icmpBytes     = 8
	pingBytes     = icmpBytes + 8
	pingEvery     = time.Millisecond
	stragglers    = 200 * time.Millisecond // how long the last answers are waited for
	receivePeriod = 50 * time.Millisecond  // how often a receiver without answers looks whether it is over
)

// pinger sends an ICMP echo every millisecond from another process's network namespace and keeps account of each. The kernel answers
// them, so they show whether an interface is alive for those who know nothing of us.
type pinger struct {
	fd   int
	id   uint16
	stop chan struct{}
	over sync.WaitGroup

	mu       sync.Mutex
	sent     []clock.Time // by number
	answered []clock.Time // by number; zero = not yet
}

// pings is what became of them.
type pings struct {
	Sent      int           `json:"sent_count"`
	Lost      int           `json:"lost_count"`
	Outage    time.Duration `json:"longest_outage_ns"` // from a lost one to the next that was answered
	RoundTrip time.Duration `json:"round_trip_ns_max"`
}

// startPinger pings an address from the namespace of a process.
func startPinger(pid int, to netip.Addr) (*pinger, error) {
	fd, err := rawSocketIn(pid)
	if err != nil {
		return nil, fmt.Errorf("opening an ICMP socket in the namespace of process %d: %w", pid, err)
	}
	timeout := unix.NsecToTimeval(int64(receivePeriod))
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.Connect(fd, &unix.SockaddrInet4{Addr: to.As4()}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pinging %v: %w", to, err), unix.Close(fd))
	}
	p := &pinger{fd: fd, id: uint16(os.Getpid()), stop: make(chan struct{})}
	sent := make(chan struct{})
	p.over.Go(func() {
		defer close(sent)
		p.send()
	})
	p.over.Go(func() { p.receive(sent) })
	return p, nil
}

// rawSocketIn opens the socket on a thread that visits the namespace. A thread that cannot come home ends with its goroutine.
func rawSocketIn(pid int) (fd int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var home, there int
		if home, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(home)
		if there, err = unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(there)
		if err = unix.Setns(there, unix.CLONE_NEWNET); err != nil {
			return
		}
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	<-done
	return fd, err
}

// send keeps its schedule: after a delay of its own it sends what it owes.
func (p *pinger) send() {
	begin := clock.Now()
	for n := uint64(0); ; n++ {
		select {
		case <-p.stop:
			return
		case <-time.After(begin.Add(time.Duration(n) * pingEvery).Sub(clock.Now())):
		}
		p.mu.Lock()
		p.sent, p.answered = append(p.sent, clock.Now()), append(p.answered, 0)
		p.mu.Unlock()
		message := echoRequest(p.id, n)
		_, _ = unix.Write(p.fd, message[:]) // what the kernel refuses is not answered, and counts as lost
	}
}

// echoRequest is number n of those with an id.
func echoRequest(id uint16, n uint64) (message [pingBytes]byte) {
	message[0] = icmpEcho
	binary.BigEndian.PutUint16(message[4:], id)
	binary.BigEndian.PutUint16(message[6:], uint16(n))
	binary.BigEndian.PutUint64(message[icmpBytes:], n)
	sum := uint32(0)
	for i := 0; i < len(message); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(message[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(message[2:], ^uint16(sum))
	return message
}

// receive takes answers until a while after the last was sent.
func (p *pinger) receive(sent <-chan struct{}) {
	var over <-chan time.Time
	var packet [256]byte
	for {
		select {
		case <-sent:
			sent, over = nil, time.After(stragglers)
		case <-over:
			return
		default:
		}
		size, err := unix.Read(p.fd, packet[:])
		if err != nil {
			continue // the timeout, an interruption, or an error that the next read does not have
		}
		now := clock.Now()
		if n, ok := p.parse(packet[:size]); ok {
			p.mu.Lock()
			if n < uint64(len(p.answered)) && p.answered[n] == 0 {
				p.answered[n] = now
			}
			p.mu.Unlock()
		}
	}
}

// parse reads the number out of an answer of ours: a raw socket is given the IP header, and everybody's messages.
func (p *pinger) parse(packet []byte) (n uint64, ok bool) {
	if len(packet) < 20 {
		return 0, false
	}
	header := int(packet[0]&15) * 4
	if len(packet) < header+pingBytes {
		return 0, false
	}
	icmp := packet[header:]
	if icmp[0] != icmpReply || binary.BigEndian.Uint16(icmp[4:]) != p.id {
		return 0, false
	}
	return binary.BigEndian.Uint64(icmp[icmpBytes:]), true
}

// finish stops and sums up.
func (p *pinger) finish() (pings, error) {
	close(p.stop)
	p.over.Wait()
	return account(p.sent, p.answered), unix.Close(p.fd)
}

// account sums up. An outage that no answer ended lasts until the last ping.
func account(sent, answered []clock.Time) (r pings) {
	r.Sent = len(sent)
	since := clock.Time(0) // of the first of a row of lost ones
	for n, at := range sent {
		if answered[n] == 0 {
			r.Lost++
			since = max(clock.Earliest(since, at), 1)
			r.Outage = max(r.Outage, at.Sub(since))
			continue
		}
		if since != 0 {
			r.Outage = max(r.Outage, at.Sub(since))
			since = 0
		}
		r.RoundTrip = max(r.RoundTrip, answered[n].Sub(at))
	}
	return r
}
