package seedtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test whose log and end are looked at.
type recorder struct {
	testing.TB
	log    string
	failed bool
}

func (r *recorder) Helper() {}

func (r *recorder) Logf(format string, args ...any) { r.log += fmt.Sprintf(format+"\n", args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Logf(format, args...)
	r.failed = true
	runtime.Goexit()
}

// with takes a seed where TEST_SEED has the given text.
func with(t *testing.T, text string) (seed uint64, r *recorder) {
	t.Setenv(variable, text)
	r = &recorder{}
	done := make(chan struct{})
	go func() { // Fatalf ends its goroutine
		defer close(done)
		seed = Seed(r)
	}()
	<-done
	return seed, r
}

func TestSeedReplaysFromItsLog(t *testing.T) {
	first, r := with(t, "")
	again, _ := with(t, strings.TrimSpace(strings.TrimPrefix(r.log, variable+"=")))
	if again != first {
		t.Errorf("%d replays as %d; the log is %q", first, again, r.log)
	}
	if next, _ := with(t, ""); next == first {
		t.Errorf("two tests drew the seed %d", first)
	}
}

func TestSeedOfTheEnvironment(t *testing.T) {
	for text, want := range map[string]uint64{"7": 7, "0x10": 16, "18446744073709551615": 1<<64 - 1} {
		if got, r := with(t, text); got != want || r.failed {
			t.Errorf("%s is %d, want %d; the log is %q", text, got, want, r.log)
		}
	}
	for _, text := range []string{"seven", "-1", "18446744073709551616"} {
		if got, r := with(t, text); !r.failed {
			t.Errorf("%q passed as %d", text, got)
		}
	}
}

func TestRandIsOfTheSeed(t *testing.T) {
	t.Setenv(variable, "42")
	a, b := Rand(&recorder{}), Rand(&recorder{})
	for range 8 {
		if x, y := a.Uint64(), b.Uint64(); x != y {
			t.Fatalf("one seed drew %d and %d", x, y)
		}
	}
}
