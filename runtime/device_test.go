//go:build linux && !portable

package runtime_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bpf"
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

// troubles is what the endpoint says of a fault that lasts.
var troubles = map[string]string{
	"link down": "veth0 is down", "peer down": "veth0 has no carrier", "deleted and made again": "looking for veth0", "moved away and back": "looking for veth0",
}

// TestDeviceFaults: whatever happens to the interface, every call has an outcome, and when it is over, calls are answered again and no frame is
// missing.
func TestDeviceFaults(t *testing.T) {
	for _, fault := range lab.DeviceFaults {
		t.Run(fault.Name, func(t *testing.T) {
			pair := labtest.NewPair(t, wide())
			srv, cli := start(t, onPair(pair), sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
			f := newTraffic(cli)
			await(t, "calls are answered", f.whole)
			for range 2 {
				labtest.Must(t, fault.Strike(pair))
				if trouble := troubles[fault.Name]; trouble != "" {
					await(t, "the trouble is seen", func() bool { return strings.Contains(srv.Endpoint().Trouble(), trouble) })
				}
				labtest.Must(t, fault.Mend(pair))
				await(t, "the interface is whole", func() bool { return srv.Endpoint().Trouble() == "" && attachedBy(t, pair.A) })
				f.again()
				await(t, "calls are answered again", f.whole)
			}
			f.end(t)
			audit(t, srv.Endpoint(), cli.Endpoint())
		})
	}
}

// TestMovedAwayForAMoment: it is back under its old index before anybody looks, and nothing but the sockets knows that it was away.
func TestMovedAwayForAMoment(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	srv, cli := start(t, onPair(pair), sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
	f := newTraffic(cli)
	await(t, "calls are answered", f.whole)
	for _, fault := range lab.DeviceFaults {
		if fault.Name == "moved away and back" {
			labtest.Must(t, fault.Strike(pair))
			labtest.Must(t, fault.Mend(pair))
		}
	}
	f.again()
	await(t, "calls are answered again", f.whole)
	f.end(t)
	audit(t, srv.Endpoint(), cli.Endpoint())
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
	pair := labtest.NewPair(t, wide())
	_, cli := start(t, onPair(pair), sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
	long := make([]byte, 1200)
	if _, err := cli.Call(timeout(t, guard), "echo", long, nil); err != nil {
		t.Fatal(err)
	}
	labtest.Must(t, pair.B.SetMTU(1000))
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
	labtest.Must(t, pair.A.SetQueues(1))
	srv, cli := start(t, onPair(pair), sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
	f := newTraffic(cli)
	await(t, "calls are answered", f.whole)
	labtest.Must(t, pair.A.SetQueues(4))
	await(t, "all four queues are served", func() bool {
		return strings.Contains(srv.Endpoint().Mode(), "queues 0-3") && statsOf(t, srv.Endpoint()).Port.QueuesUnserved == 0
	})
	f.again()
	await(t, "calls are answered", f.whole)
	if err := pair.A.SetQueues(1); !errors.Is(err, unix.EINVAL) {
		t.Errorf("taking away queues that are served: %v", err)
	}
	labtest.Must(t, srv.Endpoint().SetQueues(1))
	// The kernel lets go of a closed socket's queue in the background.
	await(t, "the queues are taken away", func() bool { return pair.A.SetQueues(1) == nil })
	f.again()
	await(t, "calls are answered", f.whole)
	f.end(t)
	audit(t, srv.Endpoint(), cli.Endpoint())
}

// TestFlowsOnFourQueues: 64 clients with 1,024 sessions, whose packets the kernel spreads over the server's queues. Every session is answered, by
// whichever queue, before and after the number of queues changes.
func TestFlowsOnFourQueues(t *testing.T) {
	const clients, sessions = 64, 16
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 4, TxQueueCount: 4})
	p := onPair(pair)
	// Without control: a thousand requests at once may be more than a busy machine answers within any SLO.
	srv := serve(t, p, sw.ServerConfig{SLO: calm, Scheme: sw.SchemeNone}, map[string]sw.Handler{"echo": echo})
	p = overUDP(p)
	var all []*sw.Session
	for range clients {
		cli := dial(t, p, srv.Addr(), sw.ClientConfig{})
		all = append(all, &cli.Session)
		for range sessions - 1 {
			all = append(all, session(t, cli))
		}
	}
	ask := func() {
		t.Helper()
		var group sync.WaitGroup
		for i, s := range all {
			group.Go(func() {
				want := strconv.Itoa(i)
				if reply, err := s.Call(timeout(t, guard), "echo", []byte(want), nil); err != nil || string(reply) != want {
					t.Errorf("session %d: %q, %v", i, reply, err)
				}
			})
		}
		group.Wait()
	}
	ask()
	before := statsOf(t, srv.Endpoint())
	if before.Sessions != clients*sessions || before.Connections != clients || before.Port.PassedOn != 0 {
		t.Errorf("%d sessions over %d connections, %d packets through the kernel", before.Sessions, before.Connections, before.Port.PassedOn)
	}
	labtest.Must(t, srv.Endpoint().SetQueues(2))
	ask()
	half := statsOf(t, srv.Endpoint())
	if half.Port.PassedOn == 0 {
		t.Error("two queues of four have no socket, and nothing came through the kernel")
	}
	labtest.Must(t, srv.Endpoint().SetQueues(4))
	ask()
	if last := statsOf(t, srv.Endpoint()); last.Completed != 3*clients*sessions {
		t.Errorf("%d completed", last.Completed)
	}
	audit(t, srv.Endpoint())
}

// TestCloseWithoutInterface closes both ends while the interface is gone: nothing is left to wait for, and nothing is closed twice.
func TestCloseWithoutInterface(t *testing.T) {
	pair := labtest.NewPair(t, wide())
	srv, cli := start(t, onPair(pair), sw.ServerConfig{SLO: brisk}, map[string]sw.Handler{"echo": echo})
	f := newTraffic(cli)
	await(t, "calls are answered", f.whole)
	labtest.Must(t, pair.Cut())
	for _, ep := range []*sw.Endpoint{srv.Endpoint(), cli.Endpoint()} {
		await(t, "the trouble is seen", func() bool { return ep.Trouble() != "" })
		statsOf(t, ep)
		audit(t, ep)
	}
	f.end(t)
	for _, ep := range []*sw.Endpoint{cli.Endpoint(), srv.Endpoint()} {
		if err := ep.Close(); err != nil {
			t.Error(err)
		}
	}
}
