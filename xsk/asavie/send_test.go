//go:build linux

package asavie_test

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/asavie"
)

// TestKickErrors takes asavie/xdp's panics as it words them. What it does not word is nobody's answer, and panics on.
func TestKickErrors(t *testing.T) {
	for errno, want := range map[unix.Errno]error{
		unix.ENOBUFS: nil, unix.ENETDOWN: xsk.ErrLinkDown, unix.ENXIO: xsk.ErrDeviceGone, unix.EBADF: xsk.ErrKick,
	} {
		err := asavie.KickError(fmt.Errorf("sendto failed with rc=%d and errno=%d", ^uintptr(0), errno))
		if !errors.Is(err, want) || want != nil && !errors.Is(err, errno) {
			t.Errorf("%v: %v, want %v", errno, err, want)
		}
	}
	for _, cause := range []any{"text", errors.New("index out of range"), 7} {
		func() {
			defer func() {
				if got := recover(); got != cause {
					t.Errorf("%v became %v", cause, got)
				}
			}()
			err := asavie.KickError(cause)
			t.Errorf("%v became the error %v", cause, err)
		}()
	}
}
