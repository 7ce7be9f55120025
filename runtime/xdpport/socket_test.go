//go:build linux

package xdpport_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest/contract"
)

// All that a port asks of a socket is in the contract that implementations are held to.
var _ xdpport.Socket = contract.Queue(nil)

// standIn opens package xsk's queues as if they were another implementation's.
var standIn = &xdpport.Sockets{Name: "stand-in", Open: func(cfg xsk.Config) (xdpport.Socket, error) {
	cfg.Checked = true
	q, err := xsk.Open(cfg)
	if err != nil {
		return nil, err
	}
	return q, nil
}}

// TestOtherSockets has a port on sockets of another implementation talk with one on ours, and says so.
func TestOtherSockets(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	a, b := open(t, pair.A, xdpport.Config{Sockets: standIn}), open(t, pair.B, xdpport.Config{})
	if !strings.HasSuffix(a.Mode(), "copy mode, sockets of stand-in (no zero-copy there)") || strings.Contains(b.Mode(), "sockets of") {
		t.Errorf("modes %q and %q", a.Mode(), b.Mode())
	}
	expect(t, a, b, []byte("one way"))
	expect(t, b, a, []byte("and the other"))
}

// TestOtherSocketsInAMode passes the mode on to them: one that they have not is refused.
func TestOtherSocketsInAMode(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	a := open(t, pair.A, xdpport.Config{Sockets: standIn, Mode: xdpport.ModeGeneric})
	b := open(t, pair.B, xdpport.Config{Sockets: standIn, Mode: xdpport.ModeCopy})
	if !strings.Contains(a.Mode(), "generic XDP, copy mode") || !strings.Contains(b.Mode(), "native XDP, copy mode") {
		t.Errorf("modes %q and %q", a.Mode(), b.Mode())
	}
	expect(t, a, b, []byte("one way"))
	expect(t, b, a, []byte("and the other"))
	labtest.Must(t, a.Close())
	if _, err := tryOpen(pair.A, xdpport.Config{Sockets: standIn, Mode: xdpport.ModeZeroCopy}); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("zero-copy on veth: %v", err)
	}
	if inspect(t, pair.A).Attached {
		t.Error("a program is left attached")
	}
	for _, mode := range []xdpport.Mode{xdpport.ModeUDP, xdpport.ModeUDP + 1} {
		if _, err := tryOpen(pair.A, xdpport.Config{Mode: mode}); !errors.Is(err, xdpport.ErrMode) {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

// TestOtherSocketsHaveOneQueue asks for more, by name and by default. Nothing stays open or attached.
func TestOtherSocketsHaveOneQueue(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	fds := descriptors(t)
	for _, queues := range []int{0, 2} {
		_, err := tryOpen(pair.A, xdpport.Config{Sockets: standIn, Queues: queues})
		if !errors.Is(err, xdpport.ErrOneQueue) || !strings.Contains(err.Error(), "stand-in") {
			t.Errorf("%d queues: %v", queues, err)
		}
	}
	broken := errors.New("no luck")
	failing := &xdpport.Sockets{Open: func(xsk.Config) (xdpport.Socket, error) { return nil, broken }}
	if _, err := tryOpen(pair.A, xdpport.Config{Sockets: failing, Queues: 1}); !errors.Is(err, broken) {
		t.Errorf("a socket that cannot be opened: %v", err)
	}
	if inspect(t, pair.A).Attached || descriptors(t) != fds {
		t.Errorf("attached: %v; %d descriptors, then %d", inspect(t, pair.A).Attached, fds, descriptors(t))
	}
	for queue := range uint32(2) {
		p := open(t, pair.A, xdpport.Config{Sockets: standIn, Queue: queue, Queues: 1})
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
