//go:build linux

package lab

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// forkThread is an OS thread that stays inside one namespace and forks the children that are to live there.
//
// It has to be one long-lived thread for two reasons. A child is born into the namespace of the thread that forks
// it, so a restarted server comes back to the link of its predecessor. And the parent-death signal follows the forking
// *thread*: had it been forked from any thread, the child would die when the runtime retires that one.
type forkThread struct {
	work    chan func()
	stopped chan struct{}
}

// startForkThread returns when the thread is in the namespace; nil means the present one.
func startForkThread(namespace *Namespace) (*forkThread, error) {
	t := &forkThread{work: make(chan func()), stopped: make(chan struct{})}
	started := make(chan error, 1)
	go t.run(namespace, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return t, nil
}

// run may find itself on the process's first thread, whose namespace is what /proc/PID/ns/net shows to the rest of the
// world. Then it passes the task on; the goroutine that it starts cannot get the same thread while that is locked here.
func (t *forkThread) run(namespace *Namespace, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() == unix.Getpid() {
		locked := make(chan error, 1)
		go t.run(namespace, locked)
		started <- <-locked
		return
	}
	defer close(t.stopped)
	serve := func() error {
		started <- nil
		for fn := range t.work {
			fn()
		}
		return nil
	}
	var err error
	if namespace != nil {
		err = namespace.Do(serve)
	} else {
		err = serve()
	}
	if err != nil {
		select { // the channel has room unless serve ran already, and then nobody waits for this error
		case started <- err:
		default:
		}
	}
}

// do runs fn on the thread and waits for it.
func (t *forkThread) do(fn func() error) error {
	result := make(chan error)
	t.work <- func() { result <- fn() }
	return <-result
}

// stop ends the thread's duty and waits until it has left the namespace. Its children must be dead.
func (t *forkThread) stop() {
	close(t.work)
	<-t.stopped
}
