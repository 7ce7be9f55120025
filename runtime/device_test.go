//go:build linux

package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/nic"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// onPair is a place on a pair of one's own.
func onPair(pair *lab.Pair) place {
	return place{
		name: "xdp", clientAddress: pair.B.Address.Addr(), onServer: pair.A.Do, onClient: pair.B.Do,
		server: sw.EndpointConfig{Interface: pair.A.Interface, RequireXDP: true},
		client: sw.EndpointConfig{Interface: pair.B.Interface, RequireXDP: true},
	}
}

// brisk is an SLO whose target delay is far below the deadlines of the traffic.
const brisk = 5 * time.Millisecond

// traffic makes calls until it is stopped, each with a deadline, and knows how the last ones ended.
type traffic struct {
	stop  context.CancelFunc
	group sync.WaitGroup
	mu    sync.Mutex
	row   int // the last calls that were answered, one after the other
	calls int
	wrong []error // ends that no fault excuses
}

func newTraffic(cli *sw.Client) *traffic {
	ctx, stop := context.WithCancel(context.Background())
	f := &traffic{stop: stop}
	f.group.Go(func() {
		for ctx.Err() == nil {
			f.call(cli)
		}
	})
	return f
}

func (f *traffic) call(cli *sw.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	reply, err := cli.Call(ctx, "echo", []byte("x"), nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	switch _, refused := errors.AsType[*sw.RejectedError](err); {
	case err == nil && string(reply) == "x":
		f.row++
	case errors.Is(err, sw.ErrDeadline), errors.Is(err, sw.ErrNoCredit), errors.Is(err, sw.ErrPeerLost), refused:
		f.row = 0
	default:
		f.row, f.wrong = 0, append(f.wrong, err)
	}
}

// whole reports whether the last calls were all answered.
func (f *traffic) whole() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.row >= 20
}

// broken forgets the calls so far.
func (f *traffic) again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.row = 0
}

func (f *traffic) end(t *testing.T) {
	f.stop()
	f.group.Wait()
	for _, err := range f.wrong {
		t.Errorf("a call ended: %v", err)
	}
}

// setLink changes the interface of an end.
func setLink(t *testing.T, end *lab.End, change func(netlink.Link) error) {
	t.Helper()
	labtest.Must(t, end.Do(func() error {
		link, err := netlink.LinkByName(end.Interface)
		if err != nil {
			return err
		}
		return change(link)
	}))
}

// setQueues changes the number of receive queues. That of transmit queues must stay at most that of the peer's receive queues.
func setQueues(t *testing.T, end *lab.End, count uint32) {
	t.Helper()
	labtest.Must(t, tryQueues(end, count))
}

func tryQueues(end *lab.End, count uint32) error {
	return end.Do(func() error {
		c, err := nic.ChannelsOf(end.Interface)
		if err != nil {
			return err
		}
		c.RxCount = count
		return nic.SetChannels(end.Interface, c)
	})
}

// deviceFault is something that happens to the server's interface, and how it ends.
type deviceFault struct {
	name    string
	strike  func(t *testing.T, pair *lab.Pair)
	trouble string // what the endpoint says of it; "" = nothing that lasts
	mend    func(t *testing.T, pair *lab.Pair)
}

var deviceFaults = []deviceFault{
	{"link down", func(t *testing.T, pair *lab.Pair) { setLink(t, pair.A, netlink.LinkSetDown) }, "veth0 is down",
		func(t *testing.T, pair *lab.Pair) { setLink(t, pair.A, netlink.LinkSetUp) }},
	{"peer down", func(t *testing.T, pair *lab.Pair) { setLink(t, pair.B, netlink.LinkSetDown) }, "",
		func(t *testing.T, pair *lab.Pair) { setLink(t, pair.B, netlink.LinkSetUp) }},
	{"deleted and made again", func(t *testing.T, pair *lab.Pair) { labtest.Must(t, pair.Cut()) }, "looking for veth0",
		func(t *testing.T, pair *lab.Pair) { labtest.Must(t, pair.Join()) }},
	{"moved away and back", moveAway, "looking for veth0", moveBack},
	{"program detached", detachByForce, "", func(*testing.T, *lab.Pair) {}},
	{"MTU changed", func(t *testing.T, pair *lab.Pair) {
		setLink(t, pair.A, func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1000) })
	}, "", func(t *testing.T, pair *lab.Pair) {
		setLink(t, pair.A, func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1500) })
	}},
}

// refuge is where a moved interface is.
var refuge *lab.Namespace

func moveAway(t *testing.T, pair *lab.Pair) {
	t.Helper()
	var err error
	if refuge, err = lab.NewNamespace(); err != nil {
		t.Fatal(err)
	}
	setLink(t, pair.A, func(l netlink.Link) error { return netlink.LinkSetNsFd(l, refuge.FD()) })
}

// moveBack brings the interface back, and gives it what it lost on the way.
func moveBack(t *testing.T, pair *lab.Pair) {
	t.Helper()
	labtest.Must(t, refuge.Do(func() error {
		l, err := netlink.LinkByName(pair.A.Interface)
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(l, pair.A.Namespace.FD())
	}))
	labtest.Must(t, refuge.Close())
	setLink(t, pair.A, func(l netlink.Link) error {
		address, err := netlink.ParseAddr(pair.A.Address.String())
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(l, address), netlink.LinkSetUp(l))
	})
}

// detachByForce takes the program off as `bpftool link detach` does.
func detachByForce(t *testing.T, pair *lab.Pair) {
	t.Helper()
	labtest.Must(t, pair.A.Do(func() error {
		status, err := bpf.Inspect(pair.A.Interface)
		if err != nil {
			return err
		}
		l, err := link.NewFromID(link.ID(status.LinkID))
		if err != nil {
			return err
		}
		defer l.Close()
		return l.Detach()
	}))
}

// TestDeviceFaults: whatever happens to the interface, every call has an outcome, and when it is over, calls are answered again and no frame is
// missing.
func TestDeviceFaults(t *testing.T) {
	for _, fault := range deviceFaults {
		t.Run(fault.name, func(t *testing.T) {
			pair := labtest.NewPair(t, lab.PairConfig{})
			srv, cli := start(t, onPair(pair), sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
			f := newTraffic(cli)
			await(t, "calls are answered", f.whole)
			for range 2 {
				fault.strike(t, pair)
				if fault.trouble != "" {
					await(t, "the trouble is seen", func() bool { return strings.Contains(srv.Endpoint().Trouble(), fault.trouble) })
				}
				fault.mend(t, pair)
				await(t, "the interface is whole", func() bool { return srv.Endpoint().Trouble() == "" && attachedBy(t, pair.A) })
				f.again()
				await(t, "calls are answered again", f.whole)
			}
			f.end(t)
			audit(t, srv.Endpoint(), cli.Endpoint())
		})
	}
}

// attachedBy reports whether a program is on the end's interface.
func attachedBy(t *testing.T, end *lab.End) (attached bool) {
	t.Helper()
	_ = end.Do(func() error { // not there yet: no
		status, err := bpf.Inspect(end.Interface)
		attached = err == nil && status.Attached
		return err
	})
	return attached
}

// TestLongerThanTheMTU: after the MTU was lowered, a call that fits no more is refused at once, and one that fits is answered.
func TestLongerThanTheMTU(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	_, cli := start(t, onPair(pair), sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
	long := make([]byte, 1200)
	if _, err := cli.Call(timeout(t, guard), "echo", long, nil); err != nil {
		t.Fatal(err)
	}
	setLink(t, pair.B, func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1000) })
	await(t, "a long call is refused", func() bool {
		_, err := cli.Call(timeout(t, 50*time.Millisecond), "echo", long, nil)
		return errors.Is(err, sw.ErrTooLarge)
	})
	if _, err := cli.Call(timeout(t, guard), "echo", long[:500], nil); err != nil {
		t.Error(err)
	}
}

// TestQueuesChange takes an endpoint from one queue to two and four and back, while calls go on: none of them ends otherwise than it may.
func TestQueuesChange(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	p := onPair(pair)
	p.server.Queues = 1
	srv, cli := start(t, p, sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
	f := newTraffic(cli)
	await(t, "calls are answered", f.whole)
	for _, count := range []int{2, 4, 2, 1, 4, 1} {
		labtest.Must(t, srv.Endpoint().SetQueues(count))
		if got := statsOf(t, srv.Endpoint()).Port.QueuesUnserved; got != 4-count {
			t.Errorf("with %d queues, %d are unserved", count, got)
		}
		f.again()
		await(t, "calls are answered", f.whole)
	}
	for _, count := range []int{0, 5} {
		if err := srv.Endpoint().SetQueues(count); err == nil {
			t.Errorf("%d queues of four were taken", count)
		}
	}
	f.end(t)
	audit(t, srv.Endpoint(), cli.Endpoint())
}

// TestQueuesGrow: an endpoint that serves all queues takes those that its interface is given, and the kernel keeps them from being taken away.
func TestQueuesGrow(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4})
	setQueues(t, pair.A, 1)
	srv, cli := start(t, onPair(pair), sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
	f := newTraffic(cli)
	await(t, "calls are answered", f.whole)
	setQueues(t, pair.A, 4)
	await(t, "all four queues are served", func() bool {
		return strings.Contains(srv.Endpoint().Mode(), "queues 0-3") && statsOf(t, srv.Endpoint()).Port.QueuesUnserved == 0
	})
	f.again()
	await(t, "calls are answered", f.whole)
	if err := tryQueues(pair.A, 1); !errors.Is(err, unix.EINVAL) {
		t.Errorf("taking away queues that are served: %v", err)
	}
	labtest.Must(t, srv.Endpoint().SetQueues(1))
	// The kernel lets go of a closed socket's queue in the background.
	await(t, "the queues are taken away", func() bool { return tryQueues(pair.A, 1) == nil })
	f.again()
	await(t, "calls are answered", f.whole)
	f.end(t)
	audit(t, srv.Endpoint(), cli.Endpoint())
}
