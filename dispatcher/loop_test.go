package dispatcher

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

// patience bounds every wait of these tests; only a failure reaches it.
const patience = 30 * time.Second

// quietPort is a port on which nothing ever arrives. Its Wait ignores the timeout, so that a wake-up that is lost hangs.
type quietPort struct {
	node
	outstanding int
	waits       chan time.Duration // gets the timeout of each Wait, if there is room
	closes      atomic.Int32
	receives    atomic.Int64
	onReceive   func()
}

func newQuietPort() *quietPort { return &quietPort{waits: make(chan time.Duration, 1)} }

func (p *quietPort) Receive(clock.Time, []Datagram) int {
	p.receives.Add(1)
	if p.onReceive != nil {
		p.onReceive()
	}
	return 0
}
func (p *quietPort) Kick()            {}
func (p *quietPort) Outstanding() int { return p.outstanding }
func (p *quietPort) Close() error     { p.closes.Add(1); return nil }
func (p *quietPort) Wait(timeout time.Duration, wake int) error {
	select {
	case p.waits <- timeout:
	default:
	}
	fds := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
	limit := -1
	if p.outstanding > 0 {
		limit = 1
	}
	_, err := unix.Poll(fds, limit)
	return err
}

// newTestLoop makes a loop over a quiet port that blocks as soon as it has nothing to do. Nothing runs before Start.
func newTestLoop(t *testing.T, workers int) (*Loop, *quietPort) {
	t.Helper()
	port := newQuietPort()
	d := New(Config{}, port)
	loop, err := NewLoop(LoopConfig{Spin: 1}, d, port)
	if err != nil {
		t.Fatal(err)
	}
	if workers > 0 {
		loop.SetWorkers(d.Serve(ServeConfig{
			Credit: credit.NewLedger(credit.Config{}, credit.NewNone(4)), Workers: workers,
		}))
		conn, _, err := d.conns.Accept(wire.Addr{Port: 1}, 1, clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		d.place(conn)
		if d.admitSession(conn, inbound{}, 1) != 1 {
			t.Fatal("the first session has another place")
		}
	}
	t.Cleanup(func() {
		if err := loop.Stop(patience); err != nil {
			t.Error(err)
		}
	})
	return loop, port
}

// enqueue puts requests of an earlier session of place 1 into the queue: they run, and their answers go nowhere.
func enqueue(t *testing.T, l *Loop, count int, run func()) {
	t.Helper()
	if err := l.Do(func(d *Dispatcher, now clock.Time) { push(d, now, count, run) }); err != nil {
		t.Fatal(err)
	}
}

func push(d *Dispatcher, now clock.Time, count int, run func()) {
	m := &Method{Name: "run", ID: wire.MethodOf("run"), Run: func(*Request) { run() }}
	for range count {
		r := d.server.pool.get()
		r.Method, r.state, r.arrival, r.enqueued = m, requestQueued, now, now
		r.session, r.serial = 1, d.server.peers.Serial(1)-1
		d.server.queue.push(r)
	}
}

// within fails the test unless the event happens.
func within[T any](t *testing.T, what string, event <-chan T) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// onProcessors runs a test with several numbers of Ps: with one, only blocking and yielding hand the baton over.
func onProcessors(t *testing.T, test func(t *testing.T)) {
	for _, processors := range []int{1, 2, 4} {
		t.Run(map[int]string{1: "one P", 2: "two", 4: "four"}[processors], func(t *testing.T) {
			before := runtime.GOMAXPROCS(processors)
			defer runtime.GOMAXPROCS(before)
			test(t)
		})
	}
}

// TestLoopWakesFromBlock posts task after task to a loop that blocks at once and without a time limit.
func TestLoopWakesFromBlock(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		loop, _ := newTestLoop(t, 0)
		loop.Start()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 5000 {
				ran := false
				if err := loop.Do(func(*Dispatcher, clock.Time) { ran = true }); err != nil || !ran {
					t.Errorf("task %d: ran %v, %v", i, ran, err)
					return
				}
			}
		}()
		within(t, "5,000 tasks", done)
	})
}

// TestLoopWorkersBound has more blocked handlers than may be in service: exactly as many start, and the loop goes on polling.
func TestLoopWorkersBound(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		for _, workers := range []int{1, 2, 7} {
			loop, _ := newTestLoop(t, workers)
			loop.Start()
			started, release := make(chan struct{}, 100), make(chan struct{})
			enqueue(t, loop, 3*workers, func() { started <- struct{}{}; <-release })
			for range workers {
				within(t, "a handler starts", started)
			}
			inService := 0
			for range 100 { // a loop that nobody leads would hang here
				if err := loop.Do(func(d *Dispatcher, _ clock.Time) { inService = d.server.inService.now }); err != nil {
					t.Fatal(err)
				}
			}
			if inService != workers || len(started) != 0 {
				t.Errorf("%d in service, %d more started; the bound is %d", inService, len(started), workers)
			}
			close(release)
			for range 2 * workers {
				within(t, "the next handler starts", started)
			}
		}
	})
}

// TestLoopHandlersThatNeedTheLoop is the middle tier with the fewest goroutines: each handler waits for the loop.
func TestLoopHandlersThatNeedTheLoop(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		for _, workers := range []int{1, 2, 5} {
			loop, _ := newTestLoop(t, workers)
			loop.Start()
			const count = 3000
			done := make(chan struct{}, count)
			enqueue(t, loop, count, func() {
				if err := loop.Do(func(*Dispatcher, clock.Time) {}); err != nil {
					t.Error(err)
				}
				done <- struct{}{}
			})
			for range count {
				within(t, "a handler that calls", done)
			}
		}
	})
}

// TestLoopLastFollowerLooksAgain is the one order in which nobody was left to poll: a follower finds the baton held, the leader
// gives it up and finds nobody parked, and only then the follower parks.
func TestLoopLastFollowerLooksAgain(t *testing.T) {
	loop, _ := newTestLoop(t, 1)
	loop.workers = loop.limit // both exist: this test plays them
	defer func() { loop.workers = 0 }()
	loop.baton.Store(true)
	loop.armed.Store(false) // the follower has looked
	loop.baton.Store(false)
	loop.arm()
	again := make(chan bool, 1)
	go func() { again <- loop.park(make(chan struct{}, 1)) }()
	within(t, "the follower looks again", again)
	if loop.armed.Load() {
		t.Error("the next leader would not wake anybody")
	}
}

// TestLoopStopRaces stops a loop under tasks from all sides: every one that was taken runs exactly once, also after the end.
func TestLoopStopRaces(t *testing.T) {
	for range 50 {
		loop, port := newTestLoop(t, 2)
		loop.Start()
		var taken, ran atomic.Int64
		var all sync.WaitGroup
		begun := make(chan struct{}, 8)
		for range 8 {
			all.Go(func() {
				begun <- struct{}{}
				for loop.Do(func(*Dispatcher, clock.Time) { ran.Add(1) }) == nil {
					taken.Add(1)
				}
			})
		}
		for range 8 {
			within(t, "begin", begun)
		}
		for range 3 {
			all.Go(func() {
				if err := loop.Stop(patience); err != nil {
					t.Error(err)
				}
				if port.closes.Load() != 1 {
					t.Errorf("Stop returned, and the port was closed %d times", port.closes.Load())
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		within(t, "the end", done)
		if taken.Load() != ran.Load() {
			t.Fatalf("%d tasks taken, %d ran", taken.Load(), ran.Load())
		}
	}
}

// TestLoopStopNeverStarted stops what never ran, and starts it afterwards.
func TestLoopStopNeverStarted(t *testing.T) {
	loop, port := newTestLoop(t, 1)
	if err := loop.Stop(patience); err != nil || port.closes.Load() != 1 {
		t.Fatalf("stop: %v, port closed %d times", err, port.closes.Load())
	}
	loop.Start()
	if loop.workers != 0 {
		t.Error("a stopped loop started")
	}
	if err := loop.Do(func(*Dispatcher, clock.Time) { t.Error("a task ran") }); err != ErrLoopStopped {
		t.Errorf("Do: %v", err)
	}
}

// TestLoopStopLeavesStuckHandlers stops a loop with a handler that does not return, and then lets it.
func TestLoopStopLeavesStuckHandlers(t *testing.T) {
	loop, port := newTestLoop(t, 2)
	loop.Start()
	started, release := make(chan struct{}), make(chan struct{})
	enqueue(t, loop, 1, func() { close(started); <-release })
	within(t, "the handler starts", started)
	stopped := make(chan struct{})
	go func() {
		if err := loop.Stop(time.Millisecond); err != nil {
			t.Error(err)
		}
		close(stopped)
	}()
	within(t, "Stop", stopped)
	if port.closes.Load() != 1 {
		t.Error("the port is open")
	}
	close(release)
	within(t, "the last goroutine ends", loop.empty)
}

// TestLoopGoexit has handlers that end their goroutines: their requests are over, and as many can be in service as before.
func TestLoopGoexit(t *testing.T) {
	const workers = 2
	loop, _ := newTestLoop(t, workers)
	loop.Start()
	const count = 50
	started := make(chan struct{}, count)
	enqueue(t, loop, count, func() { started <- struct{}{}; runtime.Goexit() })
	for range count {
		within(t, "a handler starts", started)
	}
	started, release := make(chan struct{}, count), make(chan struct{})
	enqueue(t, loop, workers, func() { started <- struct{}{}; <-release })
	for range workers {
		within(t, "a handler starts after those", started)
	}
	close(release)
}

// TestLoopLinkDown has a port that never gets rid of what it should send: the loop must kick again, and not spin for it.
func TestLoopLinkDown(t *testing.T) {
	loop, port := newTestLoop(t, 0)
	port.outstanding = 1
	loop.Start()
	select {
	case timeout := <-port.waits:
		if timeout > waitOutstanding {
			t.Errorf("waits %v with packets on the ring", timeout)
		}
	case <-time.After(patience):
		t.Fatal("the loop spins")
	}
}

// TestLoopBlocksBehindBlockedWorkers has a request wait for the only worker, which waits itself: nothing can be done, so the loop
// spins for as long as always, and then blocks. Between two polls that long are turnEvery at least, which bounds their number.
func TestLoopBlocksBehindBlockedWorkers(t *testing.T) {
	loop, port := newTestLoop(t, 1)
	loop.spin = spinDefault
	loop.Start()
	started, release := make(chan struct{}, 2), make(chan struct{})
	before := int64(0)
	err := loop.Do(func(d *Dispatcher, now clock.Time) {
		select {
		case <-port.waits: // of before
		default:
		}
		before = port.receives.Load()
		push(d, now, 2, func() { started <- struct{}{}; <-release })
	})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "the first handler starts", started)
	within(t, "the loop blocks", port.waits)
	if polls := port.receives.Load() - before; polls > 10*int64(spinDefault/turnEvery) {
		t.Errorf("%d polls before it blocked", polls)
	}
	close(release)
	within(t, "the second handler starts", started)
}

// TestTaskIsNotTimedBeforeItsPost posts in the middle of a turn, whose time was read before: a call must not seem to take longer than it did.
func TestTaskIsNotTimedBeforeItsPost(t *testing.T) {
	loop, port := newTestLoop(t, 0)
	times := make(chan [2]clock.Time, 1)
	var once sync.Once
	port.onReceive = func() {
		once.Do(func() {
			var posted clock.Time
			task := &Task{Run: func(_ *Dispatcher, now clock.Time) { times <- [2]clock.Time{posted, now} }}
			turn := clock.Now()
			for posted = turn; posted == turn; posted = clock.Now() { // however coarse the clock is
			}
			loop.Post(task)
		})
	}
	loop.Start()
	select {
	case at := <-times:
		if at[1].Before(at[0]) {
			t.Errorf("posted at %d, timed %v earlier", at[0], at[0].Sub(at[1]))
		}
	case <-time.After(patience):
		t.Fatal("the task did not run")
	}
}
