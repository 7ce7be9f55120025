package dispatcher

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// ErrLoopStopped says that the loop runs no more.
var ErrLoopStopped = errors.New("endpoint closed")

// LoopConfig says how a loop uses its CPU.
type LoopConfig struct {
	// Spin is how long the loop polls an idle port before it blocks; 0 = 50 us, negative = for ever. Waking from a block costs 15
	// to 100 us, spinning costs a CPU.
	Spin time.Duration
	// Dedicated has one goroutine poll for life, on a thread of its own, while others run the handlers. It needs at least two Ps, or nobody
	// answers while a handler computes; it is unproven above two CPUs.
	Dedicated bool
	// Pin is called by that goroutine on its thread, to move it to the CPU that it has to itself. Nil = it runs where the kernel puts it.
	Pin func()
}

// How the loop divides its time.
const (
	spinDefault = 50 * time.Microsecond
	yieldEvery  = 200 * time.Microsecond // other goroutines wait no longer for a busy loop; each yield costs it 0.6 us
	yieldEmpty  = 64                     // empty polls between two yields
	// While requests wait, the port is not asked for more after each of them: what it has would only wait behind them, and on kernel UDP
	// each poll is a system call.
	turnEvery = 15 * time.Microsecond
	waitMax   = 100 * time.Millisecond
	// A link that is down keeps packets on the TX ring for as long as it is down: they are kicked again so often.
	waitOutstanding = time.Millisecond
	// A kick costs about 1 us of system call, so four answers share one. Holding an answer back for longer than
	// answerHoldMax costs its client more than the kick costs us.
	answersPerKick = 4
	answerHoldMax  = 60 * time.Microsecond
	// Handlers that take no time fill a kick while it would be made: then it carries more.
	kickEvery  = 3 * time.Microsecond
	kickFullAt = 32 // packets that the kernel takes at once
)

// Task is work for the loop, run by whoever holds the baton. It may be posted again once it has run.
type Task struct {
	Run  func(d *Dispatcher, now clock.Time)
	next *Task
}

// Loop is the shell around a dispatcher: leader and followers, as ARCHITECTURE.md tells. One goroutine at a time holds
// the baton, and only it touches the dispatcher.
type Loop struct {
	d    *Dispatcher
	port Port
	spin time.Duration
	wake waker

	baton    atomic.Bool // held
	armed    atomic.Bool // a follower is runnable and has not looked at the baton yet
	sleeping atomic.Bool // the leader blocks, or is about to
	stopping atomic.Bool
	tasks    atomic.Pointer[Task]    // posted, newest first
	finished atomic.Pointer[Request] // by handlers that came back without the baton, newest first
	mail     atomic.Pointer[Request] // dedicated mode: handed over, and not taken yet

	dedicated bool
	pin       func()

	mu      sync.Mutex
	parked  []chan struct{}
	workers int // goroutines
	limit   int
	stopped bool          // nobody leads any more; the dispatcher belongs to whoever holds mu
	empty   chan struct{} // no goroutine is left
	stop    sync.Once
	err     error // of Stop

	// of the leader
	turned     clock.Time
	yielded    clock.Time
	idleSince  clock.Time
	emptyPolls int
	ended      uint64 // calls that had their outcome at the last yield
}

// NewLoop returns a loop around the dispatcher and its port; Start runs it.
func NewLoop(cfg LoopConfig, d *Dispatcher, port Port) (*Loop, error) {
	wake, err := newWaker()
	if err != nil {
		return nil, err
	}
	if cfg.Spin == 0 {
		cfg.Spin = spinDefault
	}
	return &Loop{
		d: d, port: port, spin: cfg.Spin, wake: wake, limit: 1, empty: make(chan struct{}, 1), dedicated: cfg.Dedicated, pin: cfg.Pin,
	}, nil
}

// Start makes the first goroutine.
func (l *Loop) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopping.Load():
	case l.dedicated:
		l.workers++
		go l.poller()
	default:
		l.spawn()
	}
}

// SetWorkers bounds the goroutines: as many handlers may be in service, and one more polls.
func (l *Loop) SetWorkers(handlers int) {
	l.mu.Lock()
	l.limit = handlers + 1
	l.mu.Unlock()
}

// Stop ends the loop and closes its port. Handlers in service get as long as patience to return; what those answer that do is
// sent, what others answer goes nowhere. Only the first call does anything, and all return its result when it is done.
func (l *Loop) Stop(patience time.Duration) error {
	l.stop.Do(func() {
		l.stopping.Store(true)
		l.signal()
		l.mu.Lock()
		for _, wake := range l.parked {
			close(wake)
		}
		l.parked = nil
		l.tellEmpty()
		l.mu.Unlock()
		select {
		case <-l.empty:
		case <-time.After(patience):
		}
		for !l.baton.CompareAndSwap(false, true) { // for good: a handler that returns from here on finds it taken
			runtime.Gosched()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		now := clock.Now()
		l.drain(now)
		l.d.Flush(now)
		l.stopped = true
		l.wake.close()
		l.err = l.port.Close()
	})
	return l.err
}

// tellEmpty tells Stop that no goroutine is left, if that is so.
func (l *Loop) tellEmpty() {
	if l.workers == 0 && l.stopping.Load() {
		select {
		case l.empty <- struct{}{}:
		default: // told already
		}
	}
}

// Post hands a task to the loop, from any goroutine. It reports false when the loop has stopped; the task will not run then.
func (l *Loop) Post(t *Task) bool {
	if l.stopping.Load() {
		return false
	}
	for {
		t.next = l.tasks.Load()
		if l.tasks.CompareAndSwap(t.next, t) {
			break
		}
	}
	if l.stopping.Load() {
		l.drainLate()
	}
	l.Rouse()
	return true
}

// drainLate runs a task that was posted while the loop stopped, when nobody else will. The port is closed then.
func (l *Loop) drainLate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		l.drain(clock.Now())
	}
}

// Do runs f with the baton and waits for it.
func (l *Loop) Do(f func(d *Dispatcher, now clock.Time)) error {
	done := make(chan struct{})
	t := &Task{Run: func(d *Dispatcher, now clock.Time) {
		f(d, now)
		close(done)
	}}
	if !l.Post(t) {
		return ErrLoopStopped
	}
	<-done
	return nil
}

// Rouse wakes a leader that blocks in the port's Wait, from any goroutine. One that is about to block sees what was put there for it before.
func (l *Loop) Rouse() {
	if l.sleeping.Load() && l.sleeping.CompareAndSwap(true, false) {
		l.signal()
	}
}

// signal ends the leader's wait. Whoever found the leader asleep may come here after Stop, when the descriptor's number may be
// another file's.
func (l *Loop) signal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.wake.signal()
}

// worker is one goroutine: follower until it finds the baton free, leader until it loses it.
func (l *Loop) worker() {
	defer l.leave()
	wake := make(chan struct{}, 1) // for life: one more of them for each time it parks would be garbage on the request path
	for {
		// From here on a leader that is about to run a handler wakes another follower; so the baton is looked at after this store.
		l.armed.Store(false)
		if l.baton.CompareAndSwap(false, true) && l.lead() {
			return
		}
		if !l.park(wake) {
			return
		}
	}
}

// park waits until a leader needs a follower; false when the loop ends. Who takes the channel off the list sends to it once, or closes it.
func (l *Loop) park(wake chan struct{}) bool {
	l.mu.Lock()
	if l.stopping.Load() {
		l.mu.Unlock()
		return false
	}
	if !l.baton.Load() { // given up since this goroutine looked, by a leader that found nobody here to wake
		l.mu.Unlock()
		return true
	}
	l.parked = append(l.parked, wake)
	l.mu.Unlock()
	_, ok := <-wake
	return ok
}

// arm makes a follower runnable, if none is. It is called without the baton: a follower that finds it still held would park, and
// nobody would poll while the handler runs.
func (l *Loop) arm() {
	if l.armed.Load() || !l.armed.CompareAndSwap(false, true) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.parked); n > 0 {
		l.parked[n-1] <- struct{}{}
		l.parked = l.parked[:n-1]
		return
	}
	if l.workers < l.limit && !l.stopping.Load() {
		l.spawn()
		return
	}
	// There are more goroutines than handlers in service, so one is on its way to park, and finds the baton free before it does.
	l.armed.Store(false)
}

func (l *Loop) spawn() {
	l.workers++
	if l.dedicated {
		go l.dedicatedWorker()
		return
	}
	go l.worker()
}

// leave is the end of a worker, also of one whose handler ended its goroutine.
func (l *Loop) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workers--
	l.tellEmpty()
}

// lead polls and runs handlers with the baton. It returns true when the loop ends, and false when the baton was lost.
func (l *Loop) lead() (ends bool) {
	l.idleSince = 0
	now := clock.Now()
	for !l.stopping.Load() {
		busy := false
		if now.Sub(l.turned) >= turnEvery || !l.d.Waiting() {
			l.turned = now
			now, busy = l.turn(now)
		} else {
			l.d.Tick(now) // the pool has its period all the same
		}
		if r := l.d.Next(now); r != nil {
			l.flushIfDue(now)
			finished, leads := l.run(r)
			if !leads {
				return false
			}
			l.idleSince, l.emptyPolls = 0, 0
			now = l.yieldIfDue(finished) // the handler's end is the next turn's beginning: a reading of the clock saved
			continue
		}
		l.d.Flush(now)
		if busy {
			l.idleSince, l.emptyPolls = 0, 0
			l.yieldIfDue(now)
		} else {
			l.idle(now)
		}
		now = clock.Now()
	}
	l.baton.Store(false)
	return true
}

// turn does everything but running handlers. It returns the time that it ended with, and whether there was anything to do.
func (l *Loop) turn(now clock.Time) (clock.Time, bool) {
	received := l.d.Receive(now) // first: it measures since when nobody was here
	now, drained := l.drain(now)
	l.d.Tick(now)
	return now, drained || received > 0
}

// drain completes what handlers left and runs posted tasks, oldest first. It returns the time that it ended with.
func (l *Loop) drain(now clock.Time) (clock.Time, bool) {
	if l.finished.Load() == nil && l.tasks.Load() == nil {
		return now, false
	}
	var requests *Request
	for r := l.finished.Swap(nil); r != nil; {
		next := r.next
		r.next, requests = requests, r
		r = next
	}
	for r := requests; r != nil; {
		next := r.next
		r.next = nil
		l.d.Complete(now, r)
		r = next
	}
	var tasks *Task
	for t := l.tasks.Swap(nil); t != nil; {
		next := t.next
		t.next, tasks = tasks, t
		t = next
	}
	if tasks != nil {
		now = clock.Now() // now that they are here: a call's time must not begin before it was made
	}
	for t := tasks; t != nil; {
		next := t.next // read first: the task may be posted again once it has run
		t.Run(l.d, now)
		t = next
	}
	return now, true
}

// run gives the baton up, runs the handler, and takes the baton back. It returns when the handler finished, and whether this goroutine
// still leads; if not, the answer has been left to who does.
func (l *Loop) run(r *Request) (finished clock.Time, leads bool) {
	l.baton.Store(false)
	l.arm()
	l.handle(r)
	finished = r.Finished
	if l.baton.CompareAndSwap(false, true) {
		l.d.Complete(finished, r)
		return finished, true
	}
	l.hand(r)
	return finished, false
}

// handle runs the handler.
func (l *Loop) handle(r *Request) {
	returned := false
	defer func() {
		r.Finished = clock.Now()
		if !returned { // it ended its goroutine (runtime.Goexit), which is no reason for its request to hang
			l.hand(r)
		}
	}()
	r.Started = clock.Now()
	r.Method.Run(r)
	returned = true
}

// hand leaves an answer to whoever leads.
func (l *Loop) hand(r *Request) {
	for {
		r.next = l.finished.Load()
		if l.finished.CompareAndSwap(r.next, r) {
			break
		}
	}
	l.Rouse()
}

// flushIfDue kicks before a handler runs if enough answers wait, or one would wait too long. Answers never wait for company:
// with nothing to run, they leave at once.
func (l *Loop) flushIfDue(now clock.Time) {
	n, since, by := l.d.Unsent()
	if n >= answersPerKick && (now.Sub(since) >= kickEvery || n >= kickFullAt) || by != 0 && now.Add(l.d.ExpectedService()) > by {
		l.d.Flush(now)
	}
}

// yieldIfDue lets other goroutines run: at once those whose calls have ended, the rest every 200 us. It returns the time.
func (l *Loop) yieldIfDue(now clock.Time) clock.Time {
	ended := l.d.endedCount
	if ended == l.ended && now.Sub(l.yielded) < yieldEvery {
		return now
	}
	l.ended, l.yielded = ended, now
	runtime.Gosched()
	return clock.Now()
}

// idle spins, then blocks.
func (l *Loop) idle(now clock.Time) {
	if l.idleSince == 0 {
		l.idleSince = now
	}
	if l.emptyPolls++; l.emptyPolls%yieldEmpty == 0 && !l.dedicated { // who has a thread of its own keeps nobody waiting
		l.yielded = now
		runtime.Gosched()
	}
	if l.spin < 0 || now.Sub(l.idleSince) < l.spin {
		return
	}
	timeout := waitMax
	if l.port.Outstanding() > 0 {
		timeout = waitOutstanding
	}
	if at := l.d.Deadline(); at != 0 {
		timeout = min(timeout, at.Sub(now))
	}
	if timeout < wheelTick {
		return
	}
	l.sleeping.Store(true)
	// Whoever posts after this load sees sleeping; what was posted before is seen here.
	if l.tasks.Load() == nil && l.finished.Load() == nil && !l.stopping.Load() {
		_ = l.port.Wait(timeout, l.wake.fd) // an error is as good as a packet: the next turn sees what is wrong
	}
	l.sleeping.Store(false)
	l.wake.reset()
}
