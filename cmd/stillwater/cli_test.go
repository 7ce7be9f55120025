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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary is the program itself when one of these is set: as it is, or after giving up root, whose rights a thread of a
// test cannot give up for itself.
const (
	asProgramVariable = "STILLWATER_TEST_AS_PROGRAM"
	asNobodyVariable  = "STILLWATER_TEST_AS_NOBODY"
)

// nobody is a user that owns nothing.
const nobody = 65534

func TestMain(m *testing.M) {
	if os.Getenv(asNobodyVariable) != "" {
		for _, drop := range []func() error{
			func() error { return syscall.Setgroups(nil) },
			func() error { return syscall.Setgid(nobody) },
			func() error { return syscall.Setuid(nobody) }, // of all threads; the capabilities go with it
		} {
			if err := drop(); err != nil {
				panic(err)
			}
		}
		main()
	}
	if os.Getenv(asProgramVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// answerTimeout bounds every wait of a test. It only shows in a test that fails.
const answerTimeout = 4 * time.Minute

// buffer is a bytes.Buffer for a log that other goroutines write and a test reads.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// result is what a run of the program left.
type result struct {
	stdout, stderr string
	code           int
}

// here runs f where the test is, and End.Do of a lab elsewhere.
func here(f func() error) error { return f() }

// runAt runs the program in this process, at a place.
func runAt(t *testing.T, at func(func() error) error, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerTimeout)
	defer cancel()
	var stdout, stderr buffer
	code := -1
	err := at(func() error {
		code = run(env{
			args: args, stdout: &stdout, stderr: &stderr, ctx: ctx, hurry: context.Background(),
			getenv: func(name string) string { return patience[name] },
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), code}
}

func cliRun(t *testing.T, args ...string) result {
	t.Helper()
	return runAt(t, here, args...)
}

// check fails the test unless the run ended with a code and said certain words on standard output or standard error.
func (r result) check(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, word := range words {
		if !strings.Contains(r.stdout+r.stderr, word) {
			t.Errorf("does not say %q", word)
		}
	}
	if t.Failed() {
		t.Fatalf("stdout:\n%s\nstderr:\n%s", r.stdout, r.stderr)
	}
}

// decode reads standard output as one JSON object.
func (r result) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
		t.Fatalf("%v in:\n%s", err, r.stdout)
	}
}

// served is a serve command that runs in this process.
type served struct {
	serveReady
	stop  context.CancelFunc // as the first signal
	lines *bufio.Scanner     // of standard output, after the first
	log   *buffer            // standard error
	ended chan int           // its exit code
}

// patient is the SLO of servers under test: on a busy machine the usual one would have them reject now and then, rightly.
// It must stay well below the calls' timeouts: a client does not send what 0.4 of the SLO would make too late.
var patient = []string{"--slo", "5s"}

// patience is the environment of commands under test, for the same reason. A test that wants a call to fail gives it the flag.
var patience = map[string]string{"STILLWATER_TIMEOUT": "20s", "STILLWATER_CONNECT_TIMEOUT": "20s"}

// startServe runs serve at a place, with JSON lines, until it says that it is ready.
func startServe(t *testing.T, at func(func() error) error, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	s := &served{stop: cancel, lines: bufio.NewScanner(out), log: &buffer{}, ended: make(chan int, 1)}
	e := env{
		args: slices.Concat([]string{"serve", "-o", "jsonl"}, patient, args), stdout: in, stderr: s.log,
		ctx: ctx, hurry: context.Background(), getenv: func(string) string { return "" },
	}
	go func() {
		code := -1
		err := at(func() error { code = run(e); return nil })
		if err != nil {
			fmt.Fprintln(s.log, err)
		}
		in.Close()
		s.ended <- code
	}()
	t.Cleanup(func() { cancel(); out.Close() })
	if !s.lines.Scan() {
		t.Fatalf("serve ended with %d before it was ready: %s", <-s.ended, s.log)
	}
	if err := json.Unmarshal(s.lines.Bytes(), &s.serveReady); err != nil {
		t.Fatalf("%v in %s", err, s.lines.Text())
	}
	if s.Event != "ready" {
		t.Fatalf("the first line is %s", s.lines.Text())
	}
	return s
}

// end stops the server as the first signal does, and returns its last counters.
func (s *served) end(t *testing.T) serveStats {
	t.Helper()
	s.stop()
	var last serveStats
	for s.lines.Scan() {
		last = serveStats{}
		if err := json.Unmarshal(s.lines.Bytes(), &last); err != nil {
			t.Fatalf("%v in %s", err, s.lines.Text())
		}
	}
	if code := <-s.ended; code != exitOK {
		t.Errorf("serve ended with %d: %s", code, s.log)
	}
	if last.Event != "stopped" {
		t.Errorf("the last line is of %q", last.Event)
	}
	return last
}
