//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// bindPatience is how long a busy queue is waited for. The kernel frees a queue in the background after its last owner
	// is gone, which was seen to take 17 to 50 ms, and more than a second where others had the CPUs.
	bindPatience = 3 * time.Second
	// bindPause is the mean wait between two attempts; the jitter keeps two waiting processes apart.
	bindPause = 5 * time.Millisecond
)

// Open is [NewUMEM] and [UMEM.Open] for a queue that has its UMEM to itself, and closes it with itself.
func Open(cfg Config) (*Queue, error) {
	u, err := NewUMEM(cfg)
	if err != nil {
		return nil, err
	}
	q, err := u.Open(cfg.Interface, cfg.QueueID)
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	q.owns = true
	return q, nil
}

// NewQueue returns a queue on given memory, without a socket: package xsktest plays the kernel at the other end.
func NewQueue(cfg Config, memory Memory) (*Queue, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	u, err := newUMEM(cfg, memory.UMEM)
	if err != nil {
		return nil, fmt.Errorf("xsk: %w", err)
	}
	return u.NewQueue(memory)
}

// bind binds the socket and returns the mode in use. ModeAuto falls back to copy only where zero-copy does not exist.
func (s *socket) bind(cfg *Config) (Mode, error) {
	attempts := []Mode{cfg.Mode}
	if cfg.Mode == ModeAuto {
		attempts = []Mode{ModeZeroCopy, ModeCopy}
	}
	var err error
	for _, attempt := range attempts {
		err = s.bindPatiently(cfg, attempt)
		if !errors.Is(err, unix.EOPNOTSUPP) {
			break
		}
	}
	if err != nil {
		return cfg.Mode, fmt.Errorf("bind to interface %d queue %d in %v mode: %w%s",
			cfg.Interface, cfg.QueueID, cfg.Mode, err, bindCure(err))
	}
	flags, err := unix.GetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_OPTIONS)
	if err != nil {
		return cfg.Mode, fmt.Errorf("ask for the mode: %w", err)
	}
	if flags&unix.XDP_OPTIONS_ZEROCOPY != 0 {
		return ModeZeroCopy, nil
	}
	return ModeCopy, nil
}

func bindCure(err error) string {
	if errors.Is(err, unix.EINVAL) {
		return " (does the interface have this queue? `ethtool -l` shows the number of its queues)"
	}
	return cure(err)
}

func (s *socket) bindPatiently(cfg *Config, mode Mode) error {
	flags := uint16(unix.XDP_USE_NEED_WAKEUP | unix.XDP_COPY)
	if mode == ModeZeroCopy {
		flags = unix.XDP_USE_NEED_WAKEUP | unix.XDP_ZEROCOPY
	}
	return s.bindTo(&unix.SockaddrXDP{Flags: flags, Ifindex: uint32(cfg.Interface), QueueID: cfg.QueueID})
}

// bindShared binds to another queue, with the UMEM and the mode of a socket that is bound. Beside the flag that says so no other is legal.
func (s *socket) bindShared(cfg *Config, with int) error {
	err := s.bindTo(&unix.SockaddrXDP{
		Flags: unix.XDP_SHARED_UMEM, SharedUmemFD: uint32(with), Ifindex: uint32(cfg.Interface), QueueID: cfg.QueueID,
	})
	if err != nil {
		return fmt.Errorf("bind to interface %d queue %d with a shared UMEM: %w%s", cfg.Interface, cfg.QueueID, err, bindCure(err))
	}
	return nil
}

// bindTo binds, patiently.
func (s *socket) bindTo(address *unix.SockaddrXDP) error {
	for deadline := time.Now().Add(bindPatience); ; {
		err := unix.Bind(s.fd, address)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w (waited %v; stop the other socket's owner, or use another queue): %w",
				ErrQueueBusy, bindPatience, err)
		}
		time.Sleep(bindPause/2 + rand.N(bindPause))
	}
}
