//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

const (
	// bindPatience is how long a busy queue is waited for. The kernel frees a queue in the background after its last owner
	// is gone, which was seen to take 17 to 50 ms.
	bindPatience = time.Second
	// bindPause is the mean wait between two attempts; the jitter keeps two waiting processes apart.
	bindPause = 5 * time.Millisecond
)

// Open binds a new socket to a queue of an interface and fills its fill ring. It needs CAP_NET_RAW. A busy queue is
// retried for up to a second, then the error is [ErrQueueBusy]. On error nothing is left open.
func Open(cfg Config) (*Queue, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s, memory, err := openSocket(&cfg)
	if err != nil {
		return nil, fmt.Errorf("xsk: %w", err)
	}
	q, err := newQueue(cfg, memory)
	if err == nil {
		q.socket = s
		q.mode, err = s.bind(&cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("xsk: %w", errors.Join(err, s.close()))
	}
	return q, nil
}

// NewQueue returns a queue on given memory, without a socket: package xsktest plays the kernel at the other end.
func NewQueue(cfg Config, memory Memory) (*Queue, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	q, err := newQueue(cfg, memory)
	if err != nil {
		return nil, fmt.Errorf("xsk: %w", err)
	}
	return q, nil
}

func newQueue(cfg Config, memory Memory) (*Queue, error) {
	pool, err := frame.NewPool(frame.Config{Count: cfg.FrameCount, SizeBytes: cfg.FrameSizeBytes, Checked: cfg.Checked})
	if err != nil {
		return nil, err
	}
	q := &Queue{
		umem:       memory.UMEM,
		pool:       pool,
		fill:       newProducer(memory.Fill),
		completion: newConsumer(memory.Completion),
		rx:         newConsumer(memory.Rx),
		tx:         newProducer(memory.Tx),
		wakeTx:     memory.WakeTx,
		wakeRx:     memory.WakeRx,
		fillLimit:  cfg.FillRingSize + cfg.RxRingSize,
		txLimit:    cfg.TxRingSize,
		start:      frame.Addr(packetHeadroom + cfg.Headroom + stampSize),
		mode:       ModeCopy,
	}
	q.Refill()
	return q, nil
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
		text := cure(err)
		if errors.Is(err, unix.EINVAL) {
			text = " (does the interface have this queue? `ethtool -l` shows the number of its queues)"
		}
		return cfg.Mode, fmt.Errorf("bind to interface %d queue %d in %v mode: %w%s",
			cfg.Interface, cfg.QueueID, cfg.Mode, err, text)
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

func (s *socket) bindPatiently(cfg *Config, mode Mode) error {
	flags := uint16(unix.XDP_USE_NEED_WAKEUP | unix.XDP_COPY)
	if mode == ModeZeroCopy {
		flags = unix.XDP_USE_NEED_WAKEUP | unix.XDP_ZEROCOPY
	}
	address := &unix.SockaddrXDP{Flags: flags, Ifindex: uint32(cfg.Interface), QueueID: cfg.QueueID}
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
