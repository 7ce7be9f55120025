//go:build linux

package xsk

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// Mode chooses between the kernel's two ways of moving packets.
type Mode uint8

// The modes.
const (
	ModeAuto     Mode = iota // zero-copy where the driver can, else copy
	ModeCopy                 // the kernel copies between its buffers and the UMEM; any driver
	ModeZeroCopy             // the NIC reads and writes the UMEM
)

// String returns auto, copy or zero-copy.
func (m Mode) String() string { return [...]string{"auto", "copy", "zero-copy", "unknown"}[m&3] }

var (
	// ErrConfig means a Config that the kernel would refuse; the error's text has the legal values.
	ErrConfig = errors.New("xsk: bad configuration")
	// ErrQueueBusy means that another socket is bound to the queue and did not go away within a second.
	ErrQueueBusy = errors.New("xsk: queue is in use by another socket")
	// ErrLinkDown means that the interface is down. Packets stay on the TX ring and leave when it is up again.
	ErrLinkDown = errors.New("xsk: link is down")
	// ErrDeviceGone means that the interface was deleted or moved to another namespace: close the queue and open one anew.
	ErrDeviceGone = errors.New("xsk: interface is gone")
	// ErrKick means that the kernel refused a kick for another reason, which is wrapped too.
	ErrKick = errors.New("xsk: kick failed")
)

// Config describes a [Queue]. Interface is required; every other zero is replaced by what the field says.
type Config struct {
	Interface int    // index, in the network namespace of the calling thread
	QueueID   uint32 // receive queue of the interface
	Queues    int    // how many queues share the UMEM at most; 0 means 1

	FrameCount     int // frames in the UMEM; 0 means the sum of FillRingSize, RxRingSize and TxRingSize (4096 by default) for each queue
	FrameSizeBytes int // 2048 or 4096; 0 means 2048
	Headroom       int // extra bytes before each received packet, beside the 256 of XDP; 0 means none

	// The rings' sizes are powers of two up to 65536. Fill and RX default to 1024, which is 1 ms of reception at
	// 1 Mpps; TX to 2048, and completion to the size of TX, below which it may not be.
	FillRingSize, RxRingSize, TxRingSize, CompletionRingSize int

	Mode Mode // 0 means auto
	// Node is the NUMA node of the NIC, which the UMEM is to be near to. It is not looked at where there is but one.
	Node Node
	// Checked panics on a frame that is given back twice or by the wrong owner, for tests.
	Checked bool
}

// WithDefaults returns the configuration with its zeros replaced, as Open uses it.
func (c Config) WithDefaults() Config {
	c.FrameSizeBytes = cmp.Or(c.FrameSizeBytes, chunkSizeMin)
	c.FillRingSize = cmp.Or(c.FillRingSize, 1024)
	c.RxRingSize = cmp.Or(c.RxRingSize, 1024)
	c.TxRingSize = cmp.Or(c.TxRingSize, 2048)
	c.CompletionRingSize = cmp.Or(c.CompletionRingSize, c.TxRingSize)
	c.Queues = cmp.Or(c.Queues, 1)
	c.FrameCount = cmp.Or(c.FrameCount, c.Queues*(c.FillRingSize+c.RxRingSize+c.TxRingSize))
	return c
}

// Validate refuses what the kernel would refuse with a bare EINVAL, and what would starve one side of frames. The error is [ErrConfig]. It
// takes a configuration without zeros: see WithDefaults.
func (c *Config) Validate() error {
	if c.FrameSizeBytes != chunkSizeMin && c.FrameSizeBytes != chunkSizeMax {
		return fmt.Errorf("%w: frame size %d: legal are %d and %d", ErrConfig, c.FrameSizeBytes, chunkSizeMin, chunkSizeMax)
	}
	for _, ring := range []struct {
		name string
		size int
	}{{"fill", c.FillRingSize}, {"RX", c.RxRingSize}, {"TX", c.TxRingSize}, {"completion", c.CompletionRingSize}} {
		if ring.size < 1 || ring.size > ringSizeMax || ring.size&(ring.size-1) != 0 {
			return fmt.Errorf("%w: %s ring of %d entries: legal are powers of two up to %d",
				ErrConfig, ring.name, ring.size, ringSizeMax)
		}
	}
	if c.CompletionRingSize < c.TxRingSize {
		return fmt.Errorf("%w: completion ring of %d entries: at least the TX ring's %d, else sending stops when it is full",
			ErrConfig, c.CompletionRingSize, c.TxRingSize)
	}
	if c.Queues < 1 || c.Queues > frame.HoldersMax {
		return fmt.Errorf("%w: %d queues: legal are 1 to %d", ErrConfig, c.Queues, frame.HoldersMax)
	}
	if need := c.Queues * (c.FillRingSize + c.RxRingSize + c.TxRingSize); c.FrameCount < need {
		return fmt.Errorf("%w: %d frames: at least fill + RX + TX = %d, else one side starves the other",
			ErrConfig, c.FrameCount, need)
	}
	if room := c.FrameSizeBytes - packetHeadroom - stampSize; c.Headroom < 0 || c.Headroom%8 != 0 || c.Headroom >= room {
		return fmt.Errorf("%w: headroom %d: legal are multiples of 8 below %d", ErrConfig, c.Headroom, room)
	}
	if c.Mode > ModeZeroCopy {
		return fmt.Errorf("%w: mode %d", ErrConfig, c.Mode)
	}
	return nil
}

// cure returns what to do about an errno of the set-up, in parentheses after a space, or nothing.
func cure(err error) string {
	switch {
	case errors.Is(err, unix.EPERM):
		return " (needs CAP_NET_RAW)"
	case errors.Is(err, unix.EAFNOSUPPORT):
		return " (the kernel is built without CONFIG_XDP_SOCKETS)"
	case errors.Is(err, unix.ENOBUFS):
		return " (the memory-lock limit is too small: raise it, `ulimit -l` or LimitMEMLOCK=, to the size of the UMEM, " +
			"or give the process CAP_IPC_LOCK)"
	case errors.Is(err, unix.EOPNOTSUPP):
		return " (the driver has no zero-copy: use copy mode)"
	case errors.Is(err, unix.ENETDOWN):
		return " (set the interface up first)"
	case errors.Is(err, unix.ENODEV):
		return " (no such interface in this network namespace)"
	}
	return ""
}
