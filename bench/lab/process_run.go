//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killTimeout bounds the wait for a child after SIGKILL. Only a child stuck inside the kernel takes longer.
const killTimeout = 10 * time.Second

// DeadError is the answer of a call to a child that is no more.
type DeadError struct {
	Role   string
	PID    int
	State  string   // how it ended, in the words of [os.ProcessState.String]
	Stderr []string // the last lines of its standard error
}

// Error includes the last lines of standard error, because they are the cause.
func (e *DeadError) Error() string {
	text := fmt.Sprintf("lab: the %s (pid %d) is dead: %s", e.Role, e.PID, e.State)
	if len(e.Stderr) > 0 {
		text += "; its last words:\n\t" + strings.Join(e.Stderr, "\n\t")
	}
	return text
}

// Process is one of the two children of a lab; after [Process.Restart] it stands for the new one.
type Process struct {
	node   Node
	place  Place
	grace  time.Duration
	thread *forkThread

	mu    sync.Mutex
	child *child
}

// startProcess returns a Process that must be closed even when it also returns an error.
func startProcess(
	ctx context.Context, node Node, place Place, namespace *Namespace, grace time.Duration,
) (*Process, error) {
	thread, err := startForkThread(namespace)
	if err != nil {
		return nil, err
	}
	p := &Process{node: node, place: place, grace: grace, thread: thread}
	return p, p.launch(ctx)
}

// launch forks the child and brings it to where it has answered "go".
func (p *Process) launch(ctx context.Context) error {
	var made *child
	err := p.thread.do(func() (err error) {
		made, err = forkChild(p.node, p.place.Role)
		return err
	})
	if err != nil {
		return fmt.Errorf("start the %s: %w", p.place.Role, err)
	}
	p.mu.Lock()
	p.child = made
	p.mu.Unlock()
	if err := made.awaitReady(ctx); err != nil {
		return fmt.Errorf("start the %s: %w", p.place.Role, err)
	}
	return p.Call(ctx, MethodGo, p.place, nil)
}

func (p *Process) current() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

// Call sends one request line to the child and decodes its answer into reply, unless that is nil. Many goroutines may
// call at once; the child answers them in turn. When ctx ends first, the late answer is thrown away and
// the child can still be called. A dead child gives a [*DeadError].
func (p *Process) Call(ctx context.Context, method string, request, reply any) error {
	c := p.current()
	if c == nil {
		return fmt.Errorf("lab: call %q: the %s was never started", method, p.place.Role)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("lab: call %q: encode the request: %w", method, err)
	}
	answer, err := c.call(ctx, method, body)
	if err != nil {
		return fmt.Errorf("lab: call %q: %w", method, err)
	}
	if answer.Error != "" {
		return fmt.Errorf("lab: call %q: the %s says: %s", method, p.place.Role, answer.Error)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Body, reply); err != nil {
		return fmt.Errorf("lab: call %q: decode the answer of the %s: %w", method, p.place.Role, err)
	}
	return nil
}

// PID is the process id of the present child.
func (p *Process) PID() int {
	if c := p.current(); c != nil {
		return c.cmd.Process.Pid
	}
	return 0
}

// Place says where the child stands.
func (p *Process) Place() Place { return p.place }

// Kill sends a signal to the child; its death, if that is what comes of it, is then nothing that [Lab.Close] reports.
// It does not wait: see [Process.Wait]. A child that is dead already gives [os.ErrProcessDone].
func (p *Process) Kill(sig syscall.Signal) error {
	c := p.current()
	if c == nil {
		return os.ErrProcessDone
	}
	c.expectDeath.Store(true)
	if err := c.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("lab: send %v to the %s: %w", sig, p.place.Role, err)
	}
	return nil
}

// Wait waits until the present child is dead and reaped. How it died is no error.
func (p *Process) Wait(ctx context.Context) error {
	c := p.current()
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("lab: wait for the end of the %s: %w", p.place.Role, ctx.Err())
	}
}

// Restart starts the program again in the same namespace, on the same link and with the same [Place]. A child that still
// runs is ended first, as in [Lab.Close].
func (p *Process) Restart(ctx context.Context) error {
	endErr := p.end()
	if c := p.current(); c != nil {
		select {
		case <-c.done: // what it died of is of no concern to its successor
		default:
			return fmt.Errorf("lab: restart the %s: %w", p.place.Role, endErr)
		}
	}
	if err := p.launch(ctx); err != nil {
		return fmt.Errorf("lab: restart: %w", err)
	}
	return nil
}

// end brings the child's life to its end within bounds. It reports a child that had to be killed or failed on its own.
func (p *Process) end() error {
	c := p.current()
	if c == nil {
		return nil
	}
	if err := c.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	select {
	case <-c.done:
		return c.verdict()
	case <-time.After(p.grace):
	}
	c.killGroup()
	late := fmt.Errorf("the %s (pid %d) did not exit within %v of the end of its input and was killed",
		p.place.Role, p.PID(), p.grace)
	if c.expectDeath.Load() {
		late = nil // it was stopped or told to ignore us on purpose
	}
	select {
	case <-c.done:
		return late
	case <-time.After(killTimeout):
		return fmt.Errorf("the %s (pid %d) survives SIGKILL for %v: it hangs in the kernel (see /proc/%[2]d/stack)",
			p.place.Role, p.PID(), killTimeout)
	}
}

func (p *Process) close() error {
	err := p.end()
	p.thread.stop()
	return err
}
