package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

const (
	// WorkBytes is how much of a payload carries the work; what follows is ballast.
	WorkBytes = 8
	// MaxWork bounds one request. A payload comes from the network, and a handler must not spin for a
	// century because somebody sent eight random bytes.
	MaxWork = 10 * time.Second
)

// ErrWork is returned for a payload that carries no legal work.
var ErrWork = errors.New("payload carries no work: its first 8 bytes must be a service time in ns, big endian, of at most 10 s")

// EncodeWork writes the service time d into the first WorkBytes of payload.
func EncodeWork(payload []byte, d time.Duration) error {
	if len(payload) < WorkBytes {
		return fmt.Errorf("encode work into %d bytes: give the payload at least %d", len(payload), WorkBytes)
	}
	if d < 0 || d > MaxWork {
		return fmt.Errorf("encode work of %v: it must be from 0 to %v", d, MaxWork)
	}
	binary.BigEndian.PutUint64(payload, uint64(d))
	return nil
}

// DecodeWork reads what EncodeWork wrote. The error is ErrWork itself, so that refusing costs no allocation.
func DecodeWork(payload []byte) (time.Duration, error) {
	if len(payload) < WorkBytes {
		return 0, ErrWork
	}
	ns := binary.BigEndian.Uint64(payload)
	if ns > uint64(MaxWork) {
		return 0, ErrWork
	}
	return time.Duration(ns), nil
}

// Spin burns the CPU for d of wall time. It yields to nobody and calls nothing but the clock: it stands for a handler
// that computes. Time stolen by the host counts as work done, since a real handler would have lost it as well.
func Spin(d time.Duration) {
	if d <= 0 {
		return
	}
	for end := clock.Now().Add(d); clock.Now().Before(end); {
	}
}

// Sleep blocks for d. It stands for a handler that waits for a device; the operating system's timer makes it longer by
// tens of microseconds.
func Sleep(d time.Duration) { time.Sleep(d) }
