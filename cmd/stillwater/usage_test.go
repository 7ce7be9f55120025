//go:build linux && !portable

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// TestUsageErrors are command lines that cannot be meant. Each is refused with what to write instead, before anything is opened.
func TestUsageErrors(t *testing.T) {
	for line, word := range map[string]string{
		"nonsense":                        "unknown command",
		"--nonsense":                      "unknown flag",
		"-o yaml version":                 "text, json, jsonl",
		"--color pink version":            "auto, always, never",
		"version now":                     "unknown command",
		"bench":                           "open, closed",
		"bench nonsense":                  "unknown command",
		"xdp":                             "load, attach, detach, status, clean",
		"xdp detach":                      "accepts 1 arg",
		"xdp detach nosuch0":              "no interface nosuch0",
		"xdp status nosuch0":              "no interface nosuch0",
		"xdp status lo lo":                "at most 1",
		"serve --slo x":                   "invalid duration",
		"serve --slo 0":                   "like 200us",
		"serve --spin -2us":               "or forever",
		"serve --cpu 1-x":                 "0-2,4",
		"serve --work spin":               "spin:exponential:10us",
		"serve --work swim:constant:1us":  "spin:exponential:10us",
		"serve --work spin:constant:1h":   "constant:10us",
		"serve --workers -1":              "negative",
		"serve --queue-max -1":            "negative",
		"serve --drain-timeout -1s":       "like 5s",
		"serve --stats-interval -1s":      "0 is never",
		"serve --require-xdp":             "needs --interface",
		"serve --queue 1":                 "need --interface",
		"serve --mode fast":               "auto, zero-copy, copy, generic or udp",
		"serve --mode zero-copy":          "--mode zero-copy needs --interface",
		"call 127.0.0.1 echo --mode copy": "needs --interface",
		"serve --interface lo --mode udp --require-xdp":           "contradict",
		"serve --interface lo --mode udp --queues 1":              "for AF_XDP",
		"serve --interface lo --mode udp --xsk asavie":            "for AF_XDP",
		"serve --xsk libxdp":                                      "own or asavie",
		"serve --xsk asavie":                                      "needs --interface",
		"call 127.0.0.1 echo --xsk asavie":                        "needs --interface",
		"serve --interface lo --xsk asavie --queues 2":            "one queue",
		"serve --address localhost":                               "10.0.0.1 or fd00::1",
		"call [fd00::1]: echo":                                    "1 to 65535",
		"call [fd00::1 echo":                                      "[fd00::1]:7700",
		"serve --interface nosuch0":                               "no interface nosuch0",
		"serve --dispatcher fast":                                 "shared or dedicated",
		"serve --poller-cpu 1":                                    "--dispatcher dedicated",
		"serve here":                                              "unknown command",
		"call 127.0.0.1":                                          "between 2 and 3",
		"call :7700 echo":                                         "host:port",
		"call a:b:c echo":                                         "host:port",
		"call 127.0.0.1:http echo":                                "1 to 65535",
		"call 127.0.0.1:0 echo":                                   "1 to 65535",
		"call 127.0.0.1 echo x --work 1us":                        "either PAYLOAD",
		"call 127.0.0.1 echo --count 0":                           "at least 1",
		"call 127.0.0.1 echo --timeout 0":                         "like 1s",
		"call 127.0.0.1 echo --payload-bytes -1":                  "negative",
		"call 127.0.0.1 spin --work 11s":                          "from 0 to 10s",
		"bench open 127.0.0.1":                                    "--rate",
		"bench open 127.0.0.1 --rate 1 --load 1":                  "--rate",
		"bench open 127.0.0.1 --rate 1 --capacity 1":              "--capacity",
		"bench open 127.0.0.1 --rate -1":                          "negative",
		"bench open 127.0.0.1 --rate 1 --arrivals bursty":         "poisson or fixed",
		"bench open 127.0.0.1 --rate 1 --deadline -1s":            "0 is none",
		"bench open 127.0.0.1 --rate 1 --payload-bytes 7":         "at least 8",
		"bench open 127.0.0.1 --rate 1 --sessions 0":              "at least 1",
		"bench open 127.0.0.1 --rate 1 --service-time constant:1": "missing unit",
		"bench open 127.0.0.1 --rate 1 --service-time bimodal:1s": "take spin or sleep",
		"bench closed 127.0.0.1 --outstanding 0":                  "at least 1",
		"bench closed 127.0.0.1 --duration 0":                     "above 0",
	} {
		refused(t, line, word)
	}
}

// TestUsageErrorsOfSchemes are such command lines of the overload control.
func TestUsageErrorsOfSchemes(t *testing.T) {
	const some = "breakwater-artifact, dagor, seda"
	for line, word := range map[string]string{
		"serve --scheme fair": some, "call 127.0.0.1 echo --scheme x": some, "bench open 127.0.0.1 --scheme x": some,
		"serve --scheme-work 10us": "exponential:10us",
	} {
		refused(t, line, word)
	}
}

// TestUsageErrorsOfDispatchers are such command lines about their number.
func TestUsageErrorsOfDispatchers(t *testing.T) {
	for line, word := range map[string]string{
		"serve --dispatchers 0":                             "1 to 64",
		"serve --dispatchers 65":                            "1 to 64",
		"serve --interface lo --dispatchers 4 --queues 2":   "each needs a queue",
		"serve --interface lo --dispatchers 2 --xsk asavie": "--dispatchers 1",
		"serve --dispatchers 2 --capture x.pcapng":          "--dispatchers 1",
	} {
		refused(t, line, word)
	}
}

// TestUsageErrorsOfHosts are such command lines of what looks at hosts and interfaces.
func TestUsageErrorsOfHosts(t *testing.T) {
	for line, word := range map[string]string{
		"nic":                                  "status, steer",
		"nic status":                           "accepts 1 arg",
		"nic status nosuch0":                   "no interface nosuch0",
		"nic steer lo":                         "--port is needed",
		"nic steer lo --port 65536":            "invalid argument",
		"nic steer lo --port 65535 --queues 2": "ports end at 65535",
		"nic steer lo --port 1 --queues 0":     "at least 1",
		"nic steer lo --port 1 --queue 4294967295 --queues 2": "no queue has such a number",
		"nic steer nosuch0 --port 1":                          "no interface nosuch0",
		"doctor now":                                          "unknown command",
		"doctor --interface nosuch0":                          "no interface nosuch0",
		"doctor --root nosuch":                                "proc and sys",
		"doctor --root testdata":                              "it has no proc",
		"doctor --root testdata/hosts/old --interface x0":     "there are eth2",
		"doctor --root testdata/hosts/old --interface ../x":   "there are eth2",
		"doctor --force":                                      "give --interface",
		"doctor --force --interface x --root testdata":        "no --root",
	} {
		refused(t, line, word)
	}
}

// refused runs a command line that cannot be meant: the error has a word, and says where there is help.
func refused(t *testing.T, line, word string) {
	t.Run(line, func(t *testing.T) {
		r := cliRun(t, strings.Fields(line)...)
		r.check(t, exitUsage, word, "--help")
		if r.stdout != "" {
			t.Errorf("an error on standard output: %s", r.stdout)
		}
	})
}

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("broken"), exitInternal},
		{usageError("no"), exitUsage},
		{fmt.Errorf("wrapped: %w", checkError(errors.New("no"))), exitCheck},
		{fmt.Errorf("attach: %w", syscall.EPERM), exitPrivilege},
		{fmt.Errorf("open: %w", fs.ErrPermission), exitPrivilege},
		{checkError(syscall.EPERM), exitCheck}, // who named a code knows better
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%v: %d, want %d", test.err, got, test.want)
		}
	}
}

// TestExplain finds a word of its own for every way a call can end, and a cure wherever there is one.
func TestExplain(t *testing.T) {
	words := map[string]error{}
	for _, err := range []error{
		sw.ErrDeadline, sw.ErrNoCredit, sw.ErrPeerLost, sw.ErrPanic, sw.ErrReplyTooLarge, sw.ErrTooLarge,
		sw.ErrQueueFull, sw.ErrThrottled, sw.ErrBreakerOpen, sw.ErrUnavailable, sw.ErrClosed, context.Canceled, context.DeadlineExceeded, &sw.HandlerError{Message: "no"}, errors.New("else"),
		&sw.RejectedError{Reason: sw.RejectOverloaded}, nil,
	} {
		got := explain(err)
		if before, taken := words[got.outcome]; taken {
			t.Errorf("%v and %v are both %q", err, before, got.outcome)
		}
		words[got.outcome] = err
		if wrapped := explain(fmt.Errorf("calling: %w", err)); err != nil && wrapped != got {
			t.Errorf("%v: %+v, wrapped %+v", err, got, wrapped)
		}
	}
	for _, reason := range []sw.RejectReason{
		sw.RejectOverloaded, sw.RejectExpired, sw.RejectUnknownMethod, sw.RejectDraining, sw.RejectCancelled,
		sw.RejectNoSlot, sw.RejectTooLarge, sw.RejectRateLimited,
	} {
		if explain(&sw.RejectedError{Reason: reason}).cure == "" {
			t.Errorf("no cure for %v", reason)
		}
	}
}

func TestSpinAndCPUs(t *testing.T) {
	for text, want := range map[string]time.Duration{"forever": -1, "-1": -1, "0": 0, "0s": 0, "70us": 70 * time.Microsecond} {
		var s spin
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%q: %v, %v", text, time.Duration(s), err)
		}
		again := spin(1)
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%q is printed as %q", text, s.String())
		}
	}
	for text, want := range map[string][]int{"0": {0}, "3,1": {1, 3}, "0-2,2,7": {0, 1, 2, 7}} {
		var l cpuList
		if err := l.Set(text); err != nil || !slices.Equal(l, want) {
			t.Errorf("%q: %v, %v", text, l, err)
		}
		var again cpuList
		if err := again.Set(l.String()); err != nil || !slices.Equal(again, l) {
			t.Errorf("%q is printed as %q", text, l.String())
		}
	}
	for _, text := range []string{"", "a", "-1", "2-1", "1-", "0-99999999", "1,,2"} {
		if err := new(cpuList).Set(text); err == nil {
			t.Errorf("CPUs %q were taken", text)
		}
	}
}

func TestServerAddress(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:7700", "10.0.0.1:5": "10.0.0.1:5", "localhost": "localhost:7700",
		"fd00::1": "[fd00::1]:7700", "[fd00::1]": "[fd00::1]:7700", "[fd00::1]:5": "[fd00::1]:5", "fe80::1%eth1": "[fe80::1%eth1]:7700",
	} {
		if got, err := serverAddress(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestWork draws the sequence that its seed gives, from spin and sleep alike.
func TestWork(t *testing.T) {
	var w work
	if err := w.Set("sleep:bimodal:1ms"); err != nil || w.String() != "sleep:bimodal:1ms" {
		t.Fatalf("%v, %v", w, err)
	}
	want := workload.ServiceRand(3)
	d := &drawer{time: w.time, rand: workload.ServiceRand(3)}
	for range 10 {
		if got, want := d.draw(), w.time.Sample(want); got != want {
			t.Errorf("drew %v, want %v", got, want)
		}
	}
}

// TestEnvironment gives flags in the environment. The command line wins, and a bad value names its variable.
func TestEnvironment(t *testing.T) {
	values := map[string]string{}
	runIn := func(args ...string) result {
		var stdout, stderr bytes.Buffer
		code := run(env{
			args: args, stdout: &stdout, stderr: &stderr, ctx: t.Context(), hurry: context.Background(),
			getenv: func(name string) string { return values[name] },
		})
		return result{stdout.String(), stderr.String(), code}
	}
	values["STILLWATER_OUTPUT"] = "jsonl"
	runIn("version").check(t, exitOK, `{"schema":"stillwater.version.v1"`)
	runIn("version", "-o", "text").check(t, exitOK, "revision ")
	values["STILLWATER_PAYLOAD_BYTES"] = "-5"
	runIn("call", "127.0.0.1", "echo").check(t, exitUsage, "--payload-bytes -5")
	values["STILLWATER_COUNT"] = "many"
	runIn("call", "127.0.0.1", "echo").check(t, exitUsage, "STILLWATER_COUNT")
}

func TestVersion(t *testing.T) {
	cliRun(t, "version").check(t, exitOK, "stillwater ", "linux/")
	var v struct {
		Schema string
		versionData
	}
	r := cliRun(t, "version", "-o", "json")
	r.check(t, exitOK)
	r.decode(t, &v)
	if v.Schema != schemaVersion || !strings.HasPrefix(v.GoVersion, "go") {
		t.Errorf("%+v", v)
	}
}
