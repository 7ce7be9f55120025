//go:build linux

package contract

import (
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

const (
	// Port is the UDP port that packets of the tests come from and go to.
	Port = 4711
	// HeaderBytes is what stands before a payload: Ethernet, IPv4 and UDP.
	HeaderBytes = 42
	// Patience bounds every wait; it is met only by a failure, so no test depends on how fast the machine is.
	Patience = 20 * time.Second
)

// Side is one end of a pair with a program and a queue on it.
type Side[Q Queue] struct {
	End      *lab.End
	Steering *Steering // nil = another side's
	Queue    Q
}

// NewSide attaches a program natively at an end and opens a queue there, checked. When the test ends, its books are audited.
func NewSide[Q Queue](t testing.TB, end *lab.End, cfg xsk.Config, open func(xsk.Config) (Q, error)) *Side[Q] {
	t.Helper()
	s := &Side[Q]{End: end}
	opened := false
	err := end.Do(func() (err error) {
		if s.Steering, err = NewSteering(end.Index); err != nil {
			return err
		}
		cfg.Interface, cfg.Checked = end.Index, true
		if s.Queue, err = open(cfg); err != nil {
			return err
		}
		opened = true
		return s.Steering.SetSocket(cfg.QueueID, s.Queue.FD())
	})
	t.Cleanup(func() {
		if opened {
			s.Close(t)
		}
		if s.Steering != nil {
			if err := s.Steering.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	return s
}

// Close audits and closes the queue, unless it is closed.
func (s *Side[Q]) Close(t testing.TB) {
	t.Helper()
	if s.Queue.FD() < 0 {
		return
	}
	if err := s.Queue.Audit(); err != nil {
		t.Error(err)
	}
	if err := s.Queue.Close(); err != nil {
		t.Error(err)
	}
}

// build writes headers and returns the size of a packet with the given payload, which is in place already.
func build(packet []byte, from, to *lab.End, payload int) int {
	copy(packet[0:6], to.Hardware)
	copy(packet[6:12], from.Hardware)
	packet[12], packet[13] = 0x08, 0x00
	ip, udp := packet[14:34], packet[34:HeaderBytes]
	clear(ip)
	clear(udp)
	ip[0], ip[8], ip[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(28+payload))
	copy(ip[12:16], from.Address.Addr().AsSlice())
	copy(ip[16:20], to.Address.Addr().AsSlice())
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	binary.BigEndian.PutUint16(udp[0:], Port)
	binary.BigEndian.PutUint16(udp[2:], Port)
	binary.BigEndian.PutUint16(udp[4:], uint16(8+payload)) // a UDP checksum of zero is none (RFC 768)
	return HeaderBytes + payload
}

// Send submits one packet whose payload begins with the number, in 8 bytes; false if no frame could be lent.
func (s *Side[Q]) Send(t testing.TB, to *lab.End, number uint64, payload int) bool {
	t.Helper()
	addr, packet, ok := s.Queue.Lend()
	if !ok {
		return false
	}
	binary.BigEndian.PutUint64(packet[HeaderBytes:], number)
	size := build(packet, s.End, to, payload)
	if !s.Queue.Submit(frame.Desc{Addr: addr, Len: uint32(size)}) {
		t.Error("submit refused a good packet") // and not Fatal: a benchmark sends from another goroutine
	}
	return true
}

// Number is what Send wrote into a packet.
func (s *Side[Q]) Number(d frame.Desc) uint64 {
	return binary.BigEndian.Uint64(s.Queue.Bytes(d)[HeaderBytes:])
}

// Receive waits for at least one packet.
func (s *Side[Q]) Receive(t testing.TB, batch []frame.Desc) []frame.Desc {
	t.Helper()
	for deadline := time.Now().Add(Patience); ; {
		if n := s.Queue.Receive(batch); n > 0 {
			return batch[:n]
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing received")
		}
	}
}

// Discard takes what there is, and releases it.
func (s *Side[Q]) Discard() (count int) {
	batch := make([]frame.Desc, 64)
	for {
		n := s.Queue.Receive(batch)
		if n == 0 {
			return count
		}
		s.Queue.Release(batch[:n])
		count += n
	}
}

// Drain kicks until the kernel has given every sent frame back.
func (s *Side[Q]) Drain(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(Patience); s.Queue.Outstanding() > 0; {
		if err := s.Queue.Kick(); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the kernel still has %d frames", s.Queue.Outstanding())
		}
	}
}

// Monotonic is the clock that the arrival stamp is taken from.
func Monotonic() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return uint64(now.Nano())
}
