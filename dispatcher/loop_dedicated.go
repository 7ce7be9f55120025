package dispatcher

import (
	"runtime"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// In dedicated mode one goroutine polls and runs no handler: it holds the baton for life, on a thread of its own. A request is handed over by a
// mailbox for one: so it is a goroutine that has a P that takes it, and all that wait do so in our queue, where their age is seen, and not in
// Go's. Answers come back on the list of the finished.

// poller is the goroutine of dedicated mode that polls.
func (l *Loop) poller() {
	defer l.leave()
	runtime.LockOSThread() // for life: the thread ends with the goroutine, and so does what pin did to it
	if l.pin != nil {
		l.pin()
	}
	l.baton.Store(true)
	l.idleSince = 0
	for now := clock.Now(); !l.stopping.Load(); now = clock.Now() {
		l.turned = now
		now, busy := l.turn(now)
		if l.offer(now) {
			busy = true
		}
		l.d.Flush(now) // nobody waits for company: what a kick takes collects the answers for the next one
		if busy || l.d.Waiting() {
			l.idleSince = 0
			continue
		}
		l.idle(now)
	}
	l.baton.Store(false)
}

// offer puts the next request into the mailbox, if that is empty, and has a worker look there.
func (l *Loop) offer(now clock.Time) bool {
	if l.mail.Load() != nil {
		l.arm() // whoever was to take it may be in a handler that blocks
		return false
	}
	r := l.d.Next(now)
	if r == nil {
		return false
	}
	l.mail.Store(r)
	l.arm()
	return true
}

// dedicatedWorker runs handlers in dedicated mode.
func (l *Loop) dedicatedWorker() {
	defer l.leave()
	wake := make(chan struct{}, 1)
	for armed := true; ; {
		if armed {
			// From here on the poller wakes another worker for what it puts into the mailbox; so that is looked at after this store. Only who
			// was armed says so: another one may be runnable still.
			l.armed.Store(false)
		}
		for r := l.mail.Swap(nil); r != nil; r = l.mail.Swap(nil) {
			l.Rouse() // the next one may be waiting
			l.handle(r)
			l.hand(r)
		}
		var ok bool
		if armed, ok = l.rest(wake); !ok {
			return
		}
	}
}

// rest waits until the poller needs a worker. It returns at once if something is in the mailbox by now, and false when the loop ends.
func (l *Loop) rest(wake chan struct{}) (armed, ok bool) {
	l.mu.Lock()
	if l.stopping.Load() {
		l.mu.Unlock()
		return false, false
	}
	if l.mail.Load() != nil { // put there since this goroutine looked, by a poller that found nobody here to wake
		l.mu.Unlock()
		return false, true
	}
	l.parked = append(l.parked, wake)
	l.mu.Unlock()
	_, ok = <-wake
	return true, ok
}
