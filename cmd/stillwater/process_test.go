//go:build linux && !portable

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/hw/cpu"
)

// serveText runs serve with text output, stops it after some lines, and returns all of them.
func serveText(t *testing.T, args []string, enough int) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(env{
			args: append([]string{"serve"}, args...), stdout: in, stderr: io.Discard, ctx: ctx, hurry: context.Background(),
			getenv: func(string) string { return "" },
		})
		in.Close()
	}()
	var lines []string
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		if lines = append(lines, scanner.Text()); len(lines) == enough {
			cancel()
		}
	}
	if code := <-ended; code != exitOK {
		t.Errorf("serve ended with %d", code)
	}
	return lines
}

// process is the program in a process of its own.
type process struct {
	*exec.Cmd
	lines  *bufio.Scanner // of standard output
	stderr *bufio.Scanner
}

func startProgram(t *testing.T, variable string, args ...string) *process {
	t.Helper()
	p := newProgram(t, variable, args...)
	p.start(t, here)
	return p
}

// newProgram is a program that is still to be started.
func newProgram(t *testing.T, variable string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command("/proc/self/exe", args...)}
	p.Env = append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0")
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines, p.stderr = bufio.NewScanner(stdout), bufio.NewScanner(stderr)
	return p
}

func (p *process) start(t *testing.T, at func(func() error) error) {
	t.Helper()
	if err := at(p.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() }) // it has ended, unless the test failed
}

// next reads lines up to the first with a word in it.
func next(t *testing.T, lines *bufio.Scanner, word string) string {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), word) {
			return lines.Text()
		}
	}
	t.Fatalf("no line with %q came", word)
	return ""
}

// exitOf waits for the end of the process.
func (p *process) exitOf(t *testing.T) int {
	t.Helper()
	_ = p.Wait() // the code says it all
	return p.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop stops all threads. The signal is handled by one of them, and until that is scheduled the others run on.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	for running := true; running; time.Sleep(time.Millisecond) {
		running = false
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Process.Pid))
		if err != nil || len(threads) == 0 {
			t.Fatalf("threads %v, %v", threads, err)
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			_, state, _ := strings.Cut(string(text), ") ") // the state is what follows the name in parentheses (proc_pid_stat(5))
			running = running || err == nil && !strings.HasPrefix(state, "T")
		}
	}
}

// TestSignals drains on the first signal and stops at once on the second, although a request is still in service.
func TestSignals(t *testing.T) {
	for _, last := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		serve := []string{"serve", "--address", "127.0.0.1", "--port", "0", "-o", "jsonl", "--stats-interval", "5ms", "--drain-timeout", "1h", "--slo", "5s"}
		idle := startProgram(t, asProgramVariable, serve...)
		next(t, idle.lines, `"event":"ready"`)
		idle.signal(t, last)
		next(t, idle.lines, `"event":"stopped"`)
		if code := idle.exitOf(t); code != exitOK {
			t.Errorf("after one signal: exit code %d", code)
		}

		busy := startProgram(t, asProgramVariable, serve...)
		var ready serveReady
		if err := json.Unmarshal([]byte(next(t, busy.lines, `"event":"ready"`)), &ready); err != nil {
			t.Fatal(err)
		}
		caller := startProgram(t, asProgramVariable, "call", ready.Address, "sleep", "--work", "10s", "--timeout", "1m")
		next(t, busy.lines, `"in_service_count":1`)
		busy.signal(t, syscall.SIGTERM)
		next(t, busy.stderr, "draining")
		busy.signal(t, last)
		next(t, busy.stderr, "stopped at once")
		if code := busy.exitOf(t); code != exitInternal {
			t.Errorf("after two signals: exit code %d", code)
		}
		caller.signal(t, syscall.SIGTERM) // nobody will answer it
		if code := caller.exitOf(t); code != exitInternal {
			t.Errorf("an interrupted call: exit code %d", code)
		}
	}
}

// TestPin serves on one CPU and looks where the kernel has the process.
func TestPin(t *testing.T) {
	allowed, err := cpu.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	one := fmt.Sprint(allowed[len(allowed)-1])
	p := startProgram(t, asProgramVariable, "serve", "--address", "127.0.0.1", "--port", "0", "--cpu", one)
	next(t, p.lines, "serving ")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if want := []byte("\nCpus_allowed_list:\t" + one + "\n"); !bytes.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	p.signal(t, os.Interrupt)
	if code := p.exitOf(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
