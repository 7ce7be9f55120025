//go:build linux

package labtest

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
)

// recorder is a test whose end is looked at.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper()    {}
func (r *recorder) Log(...any) {}

func (r *recorder) Skip(...any) {
	r.end = "skipped"
	runtime.Goexit()
}

func (r *recorder) Fatalf(string, ...any) {
	r.end = "failed"
	runtime.Goexit()
}

// TestRootNeverSkips asks for what neither root nor anybody else gets: the kernel knows no link with so many queues.
func TestRootNeverSkips(t *testing.T) {
	refused := lab.PairConfig{TxQueueCount: 1 << 20}
	skipped, leftOut := "skipped", "went on"
	if os.Geteuid() == 0 {
		skipped, leftOut = "failed", "failed"
	}
	for _, c := range []struct {
		name string
		test func(testing.TB)
		want string
	}{
		{"NewPair", func(t testing.TB) { NewPair(t, refused) }, skipped},
		{"TryPair", func(t testing.TB) { TryPair(t, refused) }, leftOut},
		{"Must", func(t testing.TB) { Must(t, errors.New("refused")) }, skipped},
		{"Must of nothing", func(t testing.TB) { Must(t, nil) }, "went on"},
	} {
		r := &recorder{}
		done := make(chan struct{})
		go func() { // what ends a test ends its goroutine
			defer close(done)
			c.test(r)
			r.end = "went on"
		}()
		<-done
		if r.end != c.want {
			t.Errorf("%s: %s, want %s", c.name, r.end, c.want)
		}
	}
}
