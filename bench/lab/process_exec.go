//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeDelay bounds the wait for the end of a dead child's output. Its whole process group is killed with it, so only a
// descendant that made a group of its own can still hold the pipes.
const pipeDelay = time.Second

// child is one life of a [Process].
type child struct {
	role        string
	cmd         *exec.Cmd
	stdin       *os.File
	stderr      *stderrTail
	expectDeath atomic.Bool
	done        chan struct{} // closed when the child is reaped and its output read to the end
	readyOnce   sync.Once
	ready       chan struct{} // closed by the child's first line

	failOnce sync.Once
	failed   chan struct{} // closed when the control protocol is broken; failure says why
	failure  error

	writeMu sync.Mutex // one call line at a time

	mu      sync.Mutex
	nextID  uint64
	pending map[uint64]chan message
	reaped  bool // the process id is not ours any more
}

// forkChild runs on the thread whose namespace and life the child shall share.
func forkChild(node Node, role string) (*child, error) {
	childInput, ourEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childInput.Close()
	c := &child{
		role:    role,
		cmd:     exec.Command(node.Path, node.Args...),
		stdin:   ourEnd,
		stderr:  &stderrTail{prefix: role + ": ", next: node.Stderr},
		done:    make(chan struct{}),
		ready:   make(chan struct{}),
		failed:  make(chan struct{}),
		pending: make(map[uint64]chan message),
	}
	stdout, stderr := &lineSplitter{line: c.receive}, &lineSplitter{line: c.stderr.add}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = childInput, stdout, stderr
	c.cmd.Env = append(os.Environ(), node.Env...)
	c.cmd.ExtraFiles = node.Files
	c.cmd.WaitDelay = pipeDelay
	// A group of its own: an interrupt from the terminal reaches only us, and we end the children in order; and what a
	// child started can be ended with it.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if u := node.User; u != nil {
		c.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID}
		c.cmd.SysProcAttr.AmbientCaps = u.Capabilities
	}
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(err, ourEnd.Close())
	}
	go c.reap(stderr)
	return c, nil
}

// reap waits for the child's death, ends what is left of its group while the zombie still holds the group's number, and
// then reaps it.
func (c *child) reap(stderr *lineSplitter) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	c.killGroup()
	c.mu.Lock()
	c.reaped = true
	c.mu.Unlock()
	_ = c.cmd.Wait() // the state says how it ended; a pipe held open by a stranger is not an error of the child
	stderr.flush()
	_ = c.stdin.Close() // twice is harmless
	close(c.done)
}

// killGroup ends the child and what it started. Once reaped, its number could belong to others.
func (c *child) killGroup() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nobody is left
	}
}

// receive takes one line of the child's standard output.
func (c *child) receive(line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		c.fail(fmt.Errorf("the %s printed %.200q where only the control protocol may stand; "+
			"print to standard error instead", c.role, line))
		return
	}
	if m.Ready {
		c.readyOnce.Do(func() { close(c.ready) })
		return
	}
	c.mu.Lock()
	answer := c.pending[m.ID]
	delete(c.pending, m.ID)
	c.mu.Unlock()
	if answer != nil { // nil: the caller has given up
		answer <- m
	}
}

// fail answers every call, present and future, with err.
func (c *child) fail(err error) {
	c.failOnce.Do(func() {
		c.failure = err
		close(c.failed)
	})
}

func (c *child) awaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.failed:
		return c.failure
	case <-c.done:
		return c.deadError()
	case <-ctx.Done():
		return fmt.Errorf("the %s (pid %d) does not announce itself (does it run ServeChild?): %w",
			c.role, c.cmd.Process.Pid, ctx.Err())
	}
}

func (c *child) call(ctx context.Context, method string, body []byte) (message, error) {
	answer := make(chan message, 1) // room for an answer that nobody waits for any more
	c.mu.Lock()
	c.nextID++
	id := c.nextID
	c.pending[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := c.send(ctx, message{ID: id, Call: method, Body: body}); err != nil {
		return message{}, err
	}
	select {
	case m := <-answer:
		return m, nil
	case <-c.failed:
		return message{}, c.failure
	case <-ctx.Done():
		return message{}, fmt.Errorf("the %s does not answer: %w", c.role, ctx.Err())
	case <-c.done:
	}
	select { // it may have answered with its last breath
	case m := <-answer:
		return m, nil
	default:
		return message{}, c.deadError()
	}
}

// send writes one line. The pipe holds 64 KiB, so a child that does not read can block us: ctx ends that too, and then
// the half-written line has broken the protocol.
func (c *child) send(ctx context.Context, m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	select {
	case <-c.failed:
		return c.failure
	case <-ctx.Done():
		return ctx.Err()
	default:
	}
	expired := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = c.stdin.SetWriteDeadline(time.Unix(1, 0)) // fails only when closed, and then Write does too
	})
	_, err = c.stdin.Write(append(line, '\n'))
	if !release() {
		<-expired
		_ = c.stdin.SetWriteDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.fail(fmt.Errorf("an earlier call to the %s was cut in the middle: %w", c.role, ctx.Err()))
		return fmt.Errorf("the %s does not read: %w", c.role, ctx.Err())
	}
	select { // a broken pipe is how a death shows first
	case <-c.done:
		return c.deadError()
	case <-ctx.Done():
	case <-time.After(killTimeout):
	}
	return fmt.Errorf("write to the %s: %w", c.role, err)
}

func (c *child) deadError() error {
	return &DeadError{
		Role: c.role, PID: c.cmd.Process.Pid, State: c.cmd.ProcessState.String(), Stderr: c.stderr.last(),
	}
}

// verdict says whether the death of the child, which is over, was as it should be.
func (c *child) verdict() error {
	if c.cmd.ProcessState.Success() || c.expectDeath.Load() {
		return nil
	}
	return c.deadError()
}
