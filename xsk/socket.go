//go:build linux

package xsk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// socket is an AF_XDP socket with its mappings, before and after it is bound.
type socket struct {
	fd       int // -1 once closed
	mappings [4]mapping
}

// openSocket makes a socket with four mapped rings. It registers the memory as its UMEM, unless the socket is to share that of another
// one, which is said when it is bound. On error nothing is left open or mapped.
func openSocket(cfg *Config, umem []byte, share bool) (*socket, Memory, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, Memory{}, fmt.Errorf("open an AF_XDP socket: %w%s", err, cure(err))
	}
	s := &socket{fd: fd}
	memory, err := s.setUp(cfg, umem, share)
	if err != nil {
		return nil, Memory{}, errors.Join(err, s.close())
	}
	return s, memory, nil
}

func (s *socket) setUp(cfg *Config, umem []byte, share bool) (Memory, error) {
	registration := umemRegistration{
		Addr:     addressOf(umem),
		Len:      uint64(len(umem)),
		Size:     uint32(cfg.FrameSizeBytes),
		Headroom: uint32(cfg.Headroom),
	}
	if !share {
		if err := setOption(s.fd, unix.XDP_UMEM_REG, &registration); err != nil {
			return Memory{}, fmt.Errorf("register a UMEM of %d bytes: %w%s", len(umem), err, cure(err))
		}
	}
	for _, ring := range []struct {
		name         string
		option, size int
	}{
		{"fill", unix.XDP_UMEM_FILL_RING, cfg.FillRingSize},
		{"completion", unix.XDP_UMEM_COMPLETION_RING, cfg.CompletionRingSize},
		{"RX", unix.XDP_RX_RING, cfg.RxRingSize},
		{"TX", unix.XDP_TX_RING, cfg.TxRingSize},
	} {
		count := uint32(ring.size)
		if err := setOption(s.fd, ring.option, &count); err != nil {
			return Memory{}, fmt.Errorf("size the %s ring to %d entries: %w%s", ring.name, count, err, cure(err))
		}
	}
	return s.mapRings(cfg, umem)
}

func (s *socket) mapRings(cfg *Config, umem []byte) (Memory, error) {
	var offsets mmapOffsets
	if err := getOption(s.fd, unix.XDP_MMAP_OFFSETS, &offsets); err != nil {
		return Memory{}, fmt.Errorf("ask for the rings' layout: %w", err)
	}
	memory := Memory{
		UMEM:   umem,
		WakeTx: func() unix.Errno { return wakeTx(s.fd) },
		WakeRx: func() unix.Errno { return wakeRx(s.fd) },
	}
	return memory, errors.Join(
		mapOne(s, 0, unix.XDP_UMEM_PGOFF_FILL_RING, &offsets.Fr, cfg.FillRingSize, &memory.Fill),
		mapOne(s, 1, unix.XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.Cr, cfg.CompletionRingSize, &memory.Completion),
		mapOne(s, 2, unix.XDP_PGOFF_RX_RING, &offsets.Rx, cfg.RxRingSize, &memory.Rx),
		mapOne(s, 3, unix.XDP_PGOFF_TX_RING, &offsets.Tx, cfg.TxRingSize, &memory.Tx),
	)
}

func mapOne[T entry](s *socket, slot int, page int64, offsets *ringOffsets, count int, to *RingMemory[T]) error {
	mapped, err := mapRing(s.fd, page, ringSize[T](offsets, uint32(count)))
	if err != nil {
		return fmt.Errorf("map a ring of %d entries: %w", count, err)
	}
	s.mappings[slot] = mapped
	*to = ringMemory[T](mapped, offsets, uint32(count))
	return nil
}

// close unmaps the rings first: while one is mapped, the kernel keeps the socket, and so the NIC queue stays busy.
// It may be called again.
func (s *socket) close() error {
	var errs []error
	for i := range s.mappings {
		errs = append(errs, s.mappings[i].unmap())
	}
	if s.fd >= 0 {
		errs = append(errs, unix.Close(s.fd))
		s.fd = -1
	}
	return errors.Join(errs...)
}

// Memory is what a queue works on: in production a socket's mappings, in tests plain memory (package xsktest).
type Memory struct {
	UMEM       []byte
	Fill       RingMemory[frame.Addr]
	Completion RingMemory[frame.Addr]
	Rx         RingMemory[frame.Desc]
	Tx         RingMemory[frame.Desc]
	WakeTx     func() unix.Errno // what Kick calls
	WakeRx     func() unix.Errno // what Receive calls when the fill ring asks for it
}
