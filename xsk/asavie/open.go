//go:build linux

package asavie

import (
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// ErrUnsupported means that asavie/xdp cannot do what was asked for; package xsk can.
var ErrUnsupported = errors.New("asavie/xdp cannot do this (package xsk can)")

const (
	// bindAttempts bounds how often a busy queue is tried, since each attempt leaves its rings mapped.
	bindAttempts = 20
	// bindPause is the mean wait between two attempts: all of them together take a second, as in package xsk.
	bindPause = 50 * time.Millisecond
)

// stampSize is the metadata that our XDP program puts right before a packet.
const stampSize = 8

// opened are the queues that this process has, or had: asavie/xdp never gives one back. Its lock is also held over every use of that module's
// settings, which are global.
var opened = struct {
	sync.Mutex
	places map[place]bool
}{places: make(map[place]bool)}

// place is a queue of an interface, in the namespace by its device and inode.
type place struct {
	device, inode uint64
	ifindex       int
	queue         uint32
}

// Open opens a socket on a queue, in the network namespace of the calling thread, with frames of its own. It needs CAP_NET_RAW. A busy queue
// is tried for a second, then the error is [xsk.ErrQueueBusy]; what the package comment says is refused is [ErrUnsupported].
func Open(cfg xsk.Config) (*Queue, error) {
	cfg = cfg.WithDefaults()
	if err := refuse(&cfg); err != nil {
		return nil, fmt.Errorf("asavie: %w", err)
	}
	pool, err := frame.NewPool(frame.Config{Count: cfg.FrameCount, SizeBytes: cfg.FrameSizeBytes, Checked: cfg.Checked})
	if err != nil {
		return nil, fmt.Errorf("asavie: %w", err)
	}
	socket, err := openOnce(&cfg)
	if err != nil {
		return nil, fmt.Errorf("asavie: %w", err)
	}
	unix.CloseOnExec(socket.FD())
	flags, err := unix.GetsockoptInt(socket.FD(), unix.SOL_XDP, unix.XDP_OPTIONS)
	if err != nil {
		return nil, fmt.Errorf("asavie: ask for the mode: %w", errors.Join(err, socket.Close()))
	}
	return newQueue(&cfg, socket, pool, flags&unix.XDP_OPTIONS_ZEROCOPY != 0), nil
}

// refuse checks the configuration before anything is opened, because what fails later stays mapped.
func refuse(cfg *xsk.Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	switch {
	case goruntime.GOARCH != "amd64":
		return fmt.Errorf("%w: run on %s: it counts on the memory order of amd64", ErrUnsupported, goruntime.GOARCH)
	case cfg.Queues > 1:
		return fmt.Errorf("%w: %d queues on one UMEM: it has one queue", ErrUnsupported, cfg.Queues)
	case cfg.Headroom != 0:
		return fmt.Errorf("%w: headroom of %d bytes: it has none", ErrUnsupported, cfg.Headroom)
	}
	return nil
}

// openOnce opens the socket of a queue that this process never had.
func openOnce(cfg *xsk.Config) (*xdp.Socket, error) {
	opened.Lock()
	defer opened.Unlock()
	var namespace unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &namespace); err != nil {
		return nil, fmt.Errorf("look at the network namespace: %w", err)
	}
	at := place{namespace.Dev, namespace.Ino, cfg.Interface, cfg.QueueID}
	if opened.places[at] {
		return nil, fmt.Errorf("%w: open queue %d of interface %d once more: this process had it before, and keeps it until it ends",
			ErrUnsupported, cfg.QueueID, cfg.Interface)
	}
	for attempt := 1; ; attempt++ {
		socket, err := open(cfg)
		if err == nil {
			opened.places[at] = true
			return socket, nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
		if attempt == bindAttempts {
			return nil, fmt.Errorf("%w (tried %d times; stop the other socket's owner, or use another queue): %w",
				xsk.ErrQueueBusy, attempt, err)
		}
		time.Sleep(bindPause/2 + rand.N(bindPause))
	}
}

// open makes one attempt. The lock must be held: the flags of bind are a global variable.
func open(cfg *xsk.Config) (*xdp.Socket, error) {
	before := xdp.DefaultSocketFlags
	defer func() { xdp.DefaultSocketFlags = before }()
	xdp.DefaultSocketFlags = [...]uint16{
		xsk.ModeAuto: 0, xsk.ModeCopy: unix.XDP_COPY, xsk.ModeZeroCopy: unix.XDP_ZEROCOPY,
	}[cfg.Mode]
	socket, err := xdp.NewSocket(cfg.Interface, int(cfg.QueueID), &xdp.SocketOptions{
		NumFrames: cfg.FrameCount, FrameSize: cfg.FrameSizeBytes,
		FillRingNumDescs: cfg.FillRingSize, CompletionRingNumDescs: cfg.CompletionRingSize,
		RxRingNumDescs: cfg.RxRingSize, TxRingNumDescs: cfg.TxRingSize,
	})
	if err != nil {
		return nil, recognise(cfg, err)
	}
	return socket, nil
}

// recognise finds the kernel's error by its text, which is all that asavie/xdp keeps of it.
func recognise(cfg *xsk.Config, err error) error {
	where := fmt.Sprintf("interface %d queue %d in %v mode", cfg.Interface, cfg.QueueID, cfg.Mode)
	for _, known := range []struct {
		errno unix.Errno
		cure  string
	}{
		{unix.EBUSY, ""},
		{unix.EPERM, " (needs CAP_NET_RAW)"},
		{unix.EAFNOSUPPORT, " (the kernel is built without CONFIG_XDP_SOCKETS)"},
		{unix.ENOBUFS, " (the memory-lock limit is too small: raise it, `ulimit -l`, to the size of the UMEM)"},
		{unix.EOPNOTSUPP, " (the driver has no zero-copy: use copy mode)"},
		{unix.ENETDOWN, " (set the interface up first)"},
		{unix.ENODEV, " (no such interface in this network namespace)"},
		{unix.EINVAL, " (does the interface have this queue? `ethtool -l` shows the number of its queues)"},
	} {
		if text, found := strings.CutSuffix(err.Error(), known.errno.Error()); found {
			return fmt.Errorf("open %s: %s%w%s", where, text, known.errno, known.cure)
		}
	}
	return fmt.Errorf("open %s: %w", where, err)
}
