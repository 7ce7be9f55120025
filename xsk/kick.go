//go:build linux

package xsk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// The errors of a kick are made once: the packet path allocates nothing.
var (
	errKickDown = fmt.Errorf("%w (set it up; packets on the ring leave then): %w", ErrLinkDown, unix.ENETDOWN)
	errKickGone = fmt.Errorf("%w (open the queue anew when it is back): %w", ErrDeviceGone, unix.ENXIO)
)

// Kick publishes all submitted packets and, if the kernel asks for it, has it send them until the TX ring is empty or no
// more progress is made. One call carries 32 packets in copy mode (TX_BATCH_SIZE of net/xdp/xsk.c, which we never
// raise, so that no call holds the P for long); completions are reclaimed between the calls. Packets that stay are sent by a later kick. Losses (EBUSY) are counted and not an error; [ErrLinkDown] and [ErrDeviceGone] are.
func (q *Queue) Kick() error {
	q.tx.publish()
	unread := q.tx.unread()
	// Each round sends up to a batch or gives up, so that this bound is met only by a kernel that sends by ones.
	for range len(q.tx.shared.Entries) {
		if unread == 0 || !q.tx.needWakeup() {
			break
		}
		reclaimed := q.Reclaim()
		if err := q.kickResult(q.wakeTx()); err != nil {
			return err
		}
		before := unread
		unread = q.tx.unread()
		if unread == before && reclaimed == 0 {
			break // no buffers, or no room: whoever holds them needs time, not calls
		}
	}
	q.Reclaim()
	if q.mode == ModeZeroCopy && q.Outstanding() > 0 && q.tx.needWakeup() {
		return q.kickResult(q.wakeTx()) // the driver may have gone to sleep on completions that it owes us
	}
	return nil
}

// kickResult sorts the answers of sendto (net/xdp/xsk.c, __xsk_generic_xmit) into go on and give up.
func (q *Queue) kickResult(errno unix.Errno) error {
	switch errno {
	case 0, unix.EINTR:
		return nil
	case unix.EAGAIN: // the batch was full, or completion ring or socket buffer are
		return nil
	case unix.ENOBUFS: // no memory for a socket buffer just now
		return nil
	case unix.EBUSY:
		q.losses.SendDropped++
		return nil
	case unix.ENETDOWN:
		return errKickDown
	case unix.ENXIO:
		return errKickGone
	}
	return fmt.Errorf("%w: %w", ErrKick, errno)
}
