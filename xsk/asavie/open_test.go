//go:build linux

package asavie_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/asavie"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest/contract"
)

func open(end *lab.End, cfg xsk.Config) (q *asavie.Queue, err error) {
	if cfg.Interface == 0 {
		cfg.Interface = end.Index
	}
	err = end.Do(func() (err error) { q, err = asavie.Open(cfg); return err })
	return q, err
}

// TestRefusals asks for what it cannot do, and for what nobody can: each error has its kind and its cure. A busy queue is one that
// another implementation holds.
func TestRefusals(t *testing.T) {
	contract.Apart(t, func(t *testing.T) {
		pair := labtest.NewPair(t, lab.PairConfig{})
		had, err := open(pair.A, xsk.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := had.Close(); err != nil {
			t.Fatal(err)
		}
		var holder *xsk.Queue
		if err := pair.B.Do(func() (err error) { holder, err = xsk.Open(xsk.Config{Interface: pair.B.Index}); return err }); err != nil {
			t.Fatal(err)
		}
		defer holder.Close()
		for _, test := range []struct {
			name string
			end  *lab.End
			cfg  xsk.Config
			is   error
			want string
		}{
			{"the same queue again", pair.A, xsk.Config{}, asavie.ErrUnsupported, "keeps it until it ends"},
			{"several queues", pair.A, xsk.Config{Queues: 2}, asavie.ErrUnsupported, "it has one queue"},
			{"headroom", pair.A, xsk.Config{Headroom: 8}, asavie.ErrUnsupported, "it has none"},
			{"rings", pair.A, xsk.Config{TxRingSize: 3}, xsk.ErrConfig, "powers of two"},
			{"a busy queue", pair.B, xsk.Config{}, xsk.ErrQueueBusy, "tried 20 times"},
			{"no such queue", pair.A, xsk.Config{QueueID: 5}, unix.EINVAL, "ethtool -l"},
			{"no zero-copy", pair.A, xsk.Config{Interface: 1, Mode: xsk.ModeZeroCopy}, unix.EOPNOTSUPP, "use copy mode"},
			{"no such interface", pair.A, xsk.Config{Interface: 4242}, unix.ENODEV, "no such interface"},
		} {
			q, err := open(test.end, test.cfg)
			if err == nil {
				t.Errorf("%s: opened", test.name)
				err = q.Close()
			}
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q in it", test.name, err, test.want)
			}
		}
	})
}

// TestNoPrivilege has an error that programs recognise, and that says what is missing.
func TestNoPrivilege(t *testing.T) {
	err := asavie.Recognise(errors.New("syscall.Socket failed: " + unix.EPERM.Error()))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Error(err)
	}
	unknown := errors.New("something new")
	if err := asavie.Recognise(unknown); !errors.Is(err, unknown) {
		t.Error(err)
	}
}

// TestNobodyIsEvicted opens a queue under a foreign program, as asavie/xdp's own Program would not leave it.
func TestNobodyIsEvicted(t *testing.T) {
	contract.Apart(t, func(t *testing.T) {
		pair := labtest.NewPair(t, lab.PairConfig{})
		stranger := labtest.Stranger(t, "somebody_else")
		info, err := stranger.Info()
		if err != nil {
			t.Fatal(err)
		}
		want, _ := info.ID()
		if err := pair.A.Do(func() error {
			attached, err := link.AttachXDP(link.XDPOptions{Program: stranger, Interface: pair.A.Index})
			if err == nil {
				t.Cleanup(func() { attached.Close() })
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		q, err := open(pair.A, xsk.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := pair.A.Do(func() error {
			l, err := netlink.LinkByIndex(pair.A.Index)
			if err == nil && (l.Attrs().Xdp == nil || l.Attrs().Xdp.ProgId != uint32(want)) {
				t.Errorf("the foreign program %d is gone: %+v", want, l.Attrs().Xdp)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestChildrenDoNotInherit looks at the flag that keeps programs that are started from holding the queue.
func TestChildrenDoNotInherit(t *testing.T) {
	contract.Apart(t, func(t *testing.T) {
		pair := labtest.NewPair(t, lab.PairConfig{})
		q, err := open(pair.A, xsk.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if flags, err := unix.FcntlInt(uintptr(q.FD()), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x, %v", flags, err)
		}
	})
}
