//go:build linux

package lab

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// stderrLineCount is how many lines of a child's standard error its death notice carries: a panic's message and the
// frames that matter.
const stderrLineCount = 20

// lineSplitter is a writer that hands complete lines, without their newline, to a function. A line is valid only
// during the call. What follows the last newline is handed over by flush.
type lineSplitter struct {
	line    func([]byte)
	partial []byte
}

// Write fails only for a line without end, so that a runaway child cannot fill this process's memory.
func (s *lineSplitter) Write(p []byte) (int, error) {
	written := len(p)
	for {
		head, rest, found := bytes.Cut(p, []byte{'\n'})
		if !found {
			break
		}
		s.line(append(s.partial, head...))
		s.partial, p = s.partial[:0], rest
	}
	if len(s.partial)+len(p) > lineBytesMax {
		return 0, fmt.Errorf("lab: a child's line is longer than %d bytes", lineBytesMax)
	}
	s.partial = append(s.partial, p...)
	return written, nil
}

func (s *lineSplitter) flush() {
	if len(s.partial) > 0 {
		s.line(s.partial)
		s.partial = nil
	}
}

// stderrTail keeps the last lines of a child's standard error and passes all of them on with a prefix.
type stderrTail struct {
	prefix string
	next   io.Writer // nil: nowhere

	mu    sync.Mutex
	lines []string
}

func (t *stderrTail) add(line []byte) {
	t.mu.Lock()
	if len(t.lines) == stderrLineCount {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, string(line))
	t.mu.Unlock()
	if t.next != nil {
		// One write a line, so that the lines of two children on one writer stay whole. Its errors are not the child's:
		// a closed terminal must not end a measurement.
		_, _ = fmt.Fprintf(t.next, "%s%s\n", t.prefix, line)
	}
}

func (t *stderrTail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...)
}
