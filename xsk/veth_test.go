//go:build linux

package xsk_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

const (
	testPort = 4711
	// patience bounds every wait; it is met only by a failure, so no test depends on how fast the machine is.
	patience = 20 * time.Second
)

// side is one end of a pair with a program and a queue on it.
type side struct {
	end     *lab.End
	program *steering
	queue   *xsk.Queue
}

// newSide attaches a program natively at an end and opens a queue there. Close checks the audit.
func newSide(t testing.TB, end *lab.End, cfg xsk.Config) *side {
	t.Helper()
	s := &side{end: end}
	err := end.Do(func() (err error) {
		if s.program, err = newSteering(end.Index); err != nil {
			return err
		}
		cfg.Interface, cfg.Checked = end.Index, true
		if s.queue, err = xsk.Open(cfg); err != nil {
			return err
		}
		return s.program.SetSocket(cfg.QueueID, s.queue.FD())
	})
	t.Cleanup(func() { s.close(t) })
	if err != nil {
		t.Fatalf("%+v", err)
	}
	return s
}

func (s *side) close(t testing.TB) {
	if s.queue != nil {
		if err := s.queue.Audit(); err != nil {
			t.Error(err)
		}
		if err := s.queue.Close(); err != nil {
			t.Error(err)
		}
	}
	if s.program != nil {
		if err := s.program.Close(); err != nil {
			t.Error(err)
		}
	}
}

// build writes headers and returns the size of a packet with the given payload, which is in place already.
func build(packet []byte, from, to *lab.End, payload int) int {
	copy(packet[0:6], to.Hardware)
	copy(packet[6:12], from.Hardware)
	packet[12], packet[13] = 0x08, 0x00
	ip, udp := packet[14:34], packet[34:42]
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
	binary.BigEndian.PutUint16(udp[0:], testPort)
	binary.BigEndian.PutUint16(udp[2:], testPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(8+payload)) // a UDP checksum of zero is none (RFC 768)
	return 42 + payload
}

// send submits one packet whose payload is number, padded to payload bytes; false if no frame could be lent.
func (s *side) send(t testing.TB, to *lab.End, number uint64, payload int) bool {
	t.Helper()
	addr, packet, ok := s.queue.Lend()
	if !ok {
		return false
	}
	binary.BigEndian.PutUint64(packet[42:], number)
	size := build(packet, s.end, to, payload)
	if !s.queue.Submit(frame.Desc{Addr: addr, Len: uint32(size)}) {
		t.Error("submit refused a good packet") // and not Fatal: a benchmark sends from another goroutine
	}
	return true
}

// receive waits for at least one packet.
func (s *side) receive(t testing.TB, batch []frame.Desc) []frame.Desc {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if n := s.queue.Receive(batch); n > 0 {
			return batch[:n]
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing received")
		}
	}
}

// drain kicks until the kernel has given every sent frame back.
func (s *side) drain(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(patience); s.queue.Outstanding() > 0; {
		if err := s.queue.Kick(); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the kernel still has %d frames", s.queue.Outstanding())
		}
	}
}

// monotonic is the clock that the arrival stamp is taken from.
func monotonic() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return uint64(now.Nano())
}

// TestAcross sends packets AF_XDP to AF_XDP: all arrive, in order, whole, and stamped between sending and receiving.
func TestAcross(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	a, b := newSide(t, pair.A, xsk.Config{}), newSide(t, pair.B, xsk.Config{})
	if a.queue.Mode() != "copy" {
		t.Errorf("veth in mode %q", a.queue.Mode())
	}
	batch := make([]frame.Desc, 64)
	const rounds, perRound = 200, 32 // veth's own ring has 256 places, so that nothing may be lost
	for round := range rounds {
		start := monotonic()
		for i := range perRound {
			if !a.send(t, pair.B, uint64(round*perRound+i), 8+(round*7)%1400) {
				t.Fatal("no frame to lend")
			}
		}
		if err := a.queue.Kick(); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < perRound; {
			received := b.receive(t, batch)
			end := monotonic()
			for _, desc := range received {
				packet := b.queue.Bytes(desc)
				if want := 42 + 8 + (round*7)%1400; len(packet) != want {
					t.Fatalf("%d bytes, want %d", len(packet), want)
				}
				if number := binary.BigEndian.Uint64(packet[42:]); number != uint64(round*perRound+got) {
					t.Fatalf("packet %d, want %d", number, round*perRound+got)
				}
				if stamp := b.queue.Stamp(desc); stamp < start || stamp > end {
					t.Fatalf("stamp %d is not within [%d, %d]", stamp, start, end)
				}
				got++
			}
			b.queue.Release(received)
		}
		a.drain(t)
	}
	if err := a.queue.Audit(); err != nil {
		t.Error(err)
	}
}

// TestKernelPeer exchanges datagrams with an ordinary UDP socket, whose ARP the kernel still answers.
func TestKernelPeer(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	b := newSide(t, pair.B, xsk.Config{})
	var client *net.UDPConn
	if err := pair.A.Do(func() (err error) {
		local := net.UDPAddrFromAddrPort(netip.AddrPortFrom(pair.A.Address.Addr(), testPort))
		client, err = net.DialUDP("udp4", local, net.UDPAddrFromAddrPort(netip.AddrPortFrom(pair.B.Address.Addr(), testPort)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	batch := make([]frame.Desc, 64)
	for i := range 100 {
		message := fmt.Sprintf("message %d", i)
		start := monotonic()
		if _, err := client.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
		received := b.receive(t, batch)
		end := monotonic()
		if got := string(b.queue.Bytes(received[0])[42:]); got != message {
			t.Fatalf("received %q, want %q", got, message)
		}
		if stamp := b.queue.Stamp(received[0]); stamp < start || stamp > end {
			t.Fatalf("stamp %d is not within [%d, %d]", stamp, start, end)
		}
		b.queue.Release(received)
		if !b.send(t, pair.A, uint64(i), 8) {
			t.Fatal("no frame to lend")
		}
		if err := b.queue.Kick(); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 64)
		n, err := client.Read(answer)
		if err != nil || n != 8 || binary.BigEndian.Uint64(answer) != uint64(i) {
			t.Fatalf("answer %d: %d bytes, %x, %v", i, n, answer[:n], err)
		}
	}
	b.drain(t)
}

// TestEveryQueueIsServed spreads kernel flows over two queues with a socket on each: which flow goes where is the kernel's hash,
// so only the sum counts.
func TestEveryQueueIsServed(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	sides := [2]*side{newSide(t, pair.B, xsk.Config{})}
	sides[1] = &side{end: pair.B}
	if err := pair.B.Do(func() (err error) {
		sides[1].queue, err = xsk.Open(xsk.Config{Interface: pair.B.Index, QueueID: 1, Checked: true})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sides[1].close(t) })
	if err := sides[0].program.SetSocket(1, sides[1].queue.FD()); err != nil {
		t.Fatal(err)
	}
	const flows = 64
	for range flows {
		var client *net.UDPConn
		if err := pair.A.Do(func() (err error) {
			client, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(pair.B.Address.Addr(), testPort)))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte("one of many")); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
	batch := make([]frame.Desc, 64)
	var got [2]int
	for deadline := time.Now().Add(patience); got[0]+got[1] < flows; {
		for i, s := range sides {
			n := s.queue.Receive(batch)
			s.queue.Release(batch[:n])
			got[i] += n
		}
		if time.Now().After(deadline) {
			t.Fatalf("received %v of %d", got, flows)
		}
	}
	t.Logf("queues received %v", got)
}
