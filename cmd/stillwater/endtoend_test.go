//go:build linux && !portable

package main

import (
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// place is where server and client stand.
type place struct {
	name               string
	onServer, onClient func(func() error) error
	server, client     []string // flags
	mode               string   // what the server says of its port
}

// places are loopback over kernel UDP, and with the rights for it a veth pair over AF_XDP.
func places(t *testing.T) []place {
	all := []place{{
		name: "udp", onServer: here, onClient: here, mode: "kernel UDP",
		server: []string{"--address", "127.0.0.1", "--port", "0"}, client: []string{"--address", "127.0.0.1"},
	}}
	pair := labtest.TryPair(t, lab.PairConfig{})
	if pair == nil {
		return all
	}
	return append(all, place{
		name: "xdp", onServer: pair.A.Do, onClient: pair.B.Do, mode: "AF_XDP on veth0 queue 0, native XDP",
		server: []string{"--interface", pair.A.Interface, "--require-xdp"},
		client: []string{"--interface", pair.B.Interface, "--require-xdp"},
	})
}

// run runs a client's command.
func (p place) run(t *testing.T, line string, more ...string) result {
	t.Helper()
	args := append(strings.Fields(line), more...)
	return runAt(t, p.onClient, append(args, p.client...)...)
}

// TestServeCallBench is the whole line: a server, calls with every way to end, and loads, over either port.
func TestServeCallBench(t *testing.T) {
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			s := startServe(t, p.onServer, append(p.server, "--work", "spin:exponential:5us", "--stats-interval", "1h")...)
			if !strings.HasPrefix(s.Mode, p.mode) || s.Port != p.name || strings.Join(s.Methods, " ") != "echo sleep spin work" {
				t.Errorf("ready line %+v", s.serveReady)
			}
			t.Run("call", func(t *testing.T) { testCall(t, p, s.Address) })
			t.Run("trace", func(t *testing.T) { testTrace(t, p, s.Address) })
			t.Run("failures", func(t *testing.T) { testFailures(t, p, s.Address) })
			t.Run("open", func(t *testing.T) { testOpen(t, p, s.Address) })
			t.Run("closed", func(t *testing.T) { testClosed(t, p, s.Address) })
			last := s.end(t)
			if last.Completed == 0 || last.Rejected["unknown method"] == 0 || last.Failed == 0 {
				t.Errorf("last counters: completed %d, failed %d, rejected %v", last.Completed, last.Failed, last.Rejected)
			}
		})
	}
}

// TestRungs serves and calls on each rung that is named. None is left for another, and kernel UDP that was asked for is nothing to warn of.
func TestRungs(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	for rung, mode := range map[string]string{
		"auto": "AF_XDP on veth0 queue 0, native XDP, copy mode (no zero-copy there)", "copy": "AF_XDP on veth0 queue 0, native XDP, copy mode",
		"generic": "AF_XDP on veth0 queue 0, generic XDP, copy mode", "udp": "kernel UDP",
	} {
		t.Run(rung, func(t *testing.T) {
			s := startServe(t, pair.A.Do, "--interface", pair.A.Interface, "--mode", rung)
			if host, _, _ := net.SplitHostPort(s.Address); s.Mode != mode || host != pair.A.Address.Addr().String() {
				t.Errorf("ready line %+v", s.serveReady)
			}
			r := runAt(t, pair.B.Do, "call", s.Address, "echo", "x", "--trace", "--interface", pair.B.Interface, "--mode", rung)
			r.check(t, exitOK, "over "+mode+"\n")
			if strings.Contains(r.stderr, "fell back") {
				t.Error(r.stderr)
			}
			s.end(t)
		})
	}
	runAt(t, pair.A.Do, "serve", "--interface", pair.A.Interface, "--mode", "zero-copy").check(t, exitInternal, "mode zero-copy", "use copy mode")
}

// TestQueueMax has more wait than may: one is in service and one waits, of eight at a time.
func TestQueueMax(t *testing.T) {
	s := startServe(t, here, "--address", "127.0.0.1", "--port", "0", "--scheme", "none", "--workers", "1", "--queue-max", "1", "--stats-interval", "1h")
	load := "bench closed " + s.Address + " --address 127.0.0.1 --scheme none --method sleep --service-time constant:1ms --sessions 8 --outstanding 8 --warmup 10ms --duration 100ms"
	runAt(t, here, strings.Fields(load)...).check(t, exitOK)
	if last := s.end(t); last.Completed == 0 || last.Rejected["overloaded"] == 0 {
		t.Errorf("last counters: completed %d, rejected %v", last.Completed, last.Rejected)
	}
}

// TestDispatchers serves at two of them, by a generator's many connections and by a client that has two itself, over AF_XDP and over kernel UDP.
func TestDispatchers(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	for _, rung := range []string{"copy", "udp"} {
		t.Run(rung, func(t *testing.T) {
			s := startServe(t, pair.A.Do, "--interface", pair.A.Interface, "--mode", rung, "--dispatchers", "2", "--stats-interval", "1h")
			if !strings.Contains(s.Mode, ", 2 dispatchers") {
				t.Errorf("ready line %+v", s.serveReady)
			}
			client := []string{"--interface", pair.B.Interface, "--mode", rung, "--dispatchers", "2"}
			for range 4 {
				runAt(t, pair.B.Do, append([]string{"call", s.Address, "echo", "x", "--count", "20"}, client...)...).check(t, exitOK)
			}
			load := []string{"bench", "closed", s.Address, "--sessions", "8", "--outstanding", "8", "--warmup", "10ms", "--duration", "100ms"}
			runAt(t, pair.B.Do, append(load, client...)...).check(t, exitOK)
			if last := s.end(t); last.Completed < 80 || last.Failed != 0 {
				t.Errorf("last counters: completed %d, failed %d", last.Completed, last.Failed)
			}
		})
	}
	runAt(t, pair.A.Do, "serve", "--interface", pair.A.Interface, "--dispatchers", "3").check(t, exitInternal, "each dispatcher needs a queue of its own", "ethtool -L")
}

func testCall(t *testing.T, p place, server string) {
	r := p.run(t, "call "+server+" echo", "hello world")
	r.check(t, exitOK)
	if r.stdout != "hello world\n" {
		t.Errorf("printed %q", r.stdout)
	}
	p.run(t, "call "+server+" work text").check(t, exitOK, "text\n")
	p.run(t, "call "+server+" spin --work 255ns").check(t, exitOK, "8 bytes: 00000000000000ff")
	p.run(t, "call "+server+" sleep --work 1us --payload-bytes 9").check(t, exitOK, "9 bytes: 00000000000003e800")

	var one struct {
		Schema string
		callPlace
		Calls []callResult
	}
	r = p.run(t, "call "+server+" echo --payload-bytes 3 --count 2 -o json")
	r.check(t, exitOK)
	r.decode(t, &one)
	if one.Schema != schemaCall || one.Address != server || one.Method != "echo" || one.Port != p.name || len(one.Calls) != 2 {
		t.Errorf("%+v", one)
	}
	for _, call := range one.Calls {
		if call.Outcome != outcomeOK || call.ReplyHex != hex.EncodeToString(make([]byte, 3)) {
			t.Errorf("%+v", call)
		}
		sum := call.HandOver + call.ClientQueue + call.Network + call.PacketQueue + call.RequestQueue + call.Service
		if sum != call.Latency || call.Latency <= 0 {
			t.Errorf("the parts of %+v sum up to %v", call, sum)
		}
	}
	r = p.run(t, "call "+server+" echo x --count 3 -o jsonl")
	r.check(t, exitOK)
	if lines := strings.Count(r.stdout, `{"schema":"stillwater.call.v1"`); lines != 3 || strings.Count(r.stdout, "\n") != 3 {
		t.Errorf("3 calls printed as:\n%s", r.stdout)
	}
}

func testTrace(t *testing.T, p place, server string) {
	rows := []string{"hand over", "client queue", "network", "packet queue", "request queue", "service", "total"}
	one := p.run(t, "call "+server+" spin --work 10us --trace")
	one.check(t, exitOK, append(rows, "share", "100.0 %")...)
	many := p.run(t, "call "+server+" echo x --count 5 --trace")
	many.check(t, exitOK, append(rows, "first call", "mean of 4", "least", "most")...)
	if strings.Contains(many.stdout, "\nx\n") {
		t.Errorf("the replies of many calls hide the table:\n%s", many.stdout)
	}
	for line := range strings.Lines(one.stdout) {
		if strings.TrimRight(line, " \n")+"\n" != line {
			t.Errorf("blanks at the end of %q", line)
		}
	}
}

// testFailures has every end of a call that one can bring about from here.
func testFailures(t *testing.T, p place, server string) {
	p.run(t, "call "+server+" nosuch").check(t, exitCheck, "rejected: unknown method", "cure: ", "echo, spin, sleep")
	p.run(t, "call "+server+" spin").check(t, exitCheck, "payload carries no work", "cure: ")
	p.run(t, "call "+server+" echo --payload-bytes 60000").check(t, exitUsage, "does not fit", "cure: ")
	p.run(t, "call "+server+" sleep --work 300ms --timeout 20ms").check(t, exitCheck, "cure: ")
	elsewhere := server[:strings.LastIndex(server, ":")] + ":9"
	r := p.run(t, "call "+elsewhere+" echo --timeout 50ms --count 2 -o json")
	r.check(t, exitCheck, "call 1 of 2", "cure: ")
	var calls struct{ Calls []callResult }
	r.decode(t, &calls)
	if len(calls.Calls) != 1 || calls.Calls[0].Outcome == outcomeOK || calls.Calls[0].Cure == "" || calls.Calls[0].Error == "" {
		t.Errorf("%+v", calls)
	}
	for _, kind := range []string{"open --rate 10 ", "closed "} {
		r := p.run(t, "bench "+kind+elsewhere+" --connect-timeout 50ms")
		r.check(t, exitCheck, "cure: ")
		if r.stdout != "" {
			t.Errorf("a result without a server:\n%s", r.stdout)
		}
	}
}

// quick makes a run short and believable on any machine: no limit depends on how fast it is.
const quick = " --duration 100ms --warmup 10ms --slo 10s --sessions 3 "

func testOpen(t *testing.T, p place, server string) {
	page := filepath.Join(t.TempDir(), "page.html")
	r := p.run(t, "bench open "+server+quick+
		"--rate 1000 --method spin --service-time bimodal:2us --lateness-limit 1h --seed 7 --html "+page)
	r.check(t, exitOK, "open loop: spin bimodal:2µs at 1000/s, poisson", "seed 7", "answered", "our own lateness",
		"client queue", "request queue", "retransmissions", "machine: Linux", "3 sessions")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"<svg", "bench open " + server, "seed", "p99.9", "request queue"} {
		if !strings.Contains(string(text), word) {
			t.Errorf("the page does not have %q", word)
		}
	}
	var d struct {
		Schema string
		benchData
	}
	r = p.run(t, "bench open "+server+quick+"--load 0.1 --capacity 5000 --arrivals fixed --lateness-limit 1h --deadline 0 -o json")
	r.check(t, exitOK)
	r.decode(t, &d)
	n := d.Result.Counts
	if d.Schema != schemaBench || d.Result.RatePerS != 500 || d.Capacity != 5000 || d.Load != 0.1 || d.Result.Deadline != 0 {
		t.Errorf("%+v of %+v", d, d.Result)
	}
	// 500 a second by a metronome for a tenth of it.
	if n.Offered < 49 || n.Offered > 51 || n.OK == 0 || n.Offered != n.OK+n.Rejected+n.Expired+n.Failed || d.Result.Split == nil {
		t.Errorf("books %+v", n)
	}
	if d.Result.Buckets != nil || d.Result.Histograms != nil || d.Machine.KernelRelease == "" || d.Client.Outcomes["ok"] == 0 {
		t.Errorf("long form without --full, or facts are missing: %s", r.stdout)
	}
	r = p.run(t, "bench open "+server+quick+"--rate 1000 --lateness-limit 1ns -o jsonl --full")
	r.check(t, exitCheck, "could not keep its schedule", "not to be believed")
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil || len(d.Result.Failures) == 0 || d.Result.Buckets == nil || d.Result.Histograms == nil {
		t.Errorf("%v in the result: %s", err, r.stdout)
	}
}

func testClosed(t *testing.T, p place, server string) {
	r := p.run(t, "bench closed "+server+quick+"--outstanding 2")
	r.check(t, exitOK, "closed loop: echo with 2 outstanding", "answered", "within SLO")
	p.run(t, "bench closed "+server+quick+"--method nosuch").check(t, exitCheck, "unknown method")
	p.run(t, "bench closed "+server+quick+"--html /nosuch/page.html").check(t, exitInternal, "/nosuch/page.html")
}

// TestMeasuredCapacity has bench open find the capacity that its load is a multiple of.
func TestMeasuredCapacity(t *testing.T) {
	p := places(t)[0]
	s := startServe(t, p.onServer, p.server...)
	r := p.run(t, "bench open "+s.Address+quick+"--load 0.05 --lateness-limit 1h -o json")
	r.check(t, exitOK)
	var d benchData
	r.decode(t, &d)
	if d.Capacity <= 0 || d.Result.RatePerS != 0.05*d.Capacity {
		t.Errorf("capacity %v, rate %v", d.Capacity, d.Result.RatePerS)
	}
	s.end(t)
}

// TestFallback asks for a queue that the interface does not have: the calls go over kernel UDP, with a warning that --strict
// makes count, and --require-xdp turns it into an error.
func TestFallback(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{})
	s := startServe(t, pair.A.Do, "--interface", pair.A.Interface, "--queue", "9")
	if s.Port != "udp" || !strings.Contains(s.Mode, "is not to be had") || !strings.Contains(s.log.String(), "fell back to kernel UDP") {
		t.Errorf("ready line %+v, log %s", s.serveReady, s.log)
	}
	server := pair.A.Address.Addr().String()
	call := []string{"call", server, "echo", "hello", "--interface", pair.B.Interface, "--queue", "9"}
	runAt(t, pair.B.Do, call...).check(t, exitOK, "hello", "fell back to kernel UDP")
	runAt(t, pair.B.Do, append(call, "--strict")...).check(t, exitWarning, "hello", "1 warnings")
	runAt(t, pair.B.Do, append(call, "--require-xdp")...).check(t, exitInternal, "opening AF_XDP on veth0")
	s.end(t)
}

// TestStatsInText serves with a table for people.
func TestStatsInText(t *testing.T) {
	p := places(t)[0]
	out := p.run(t, "version") // a command without flags of an endpoint refuses them
	out.check(t, exitUsage, "unknown flag")
	lines := serveText(t, append(p.server, "--stats-interval", "1ms", "--scheme", "none", "--color", "always"), 5)
	if !strings.HasPrefix(lines[0], "serving echo, sleep, spin on 127.0.0.1:") || !strings.Contains(lines[0], "SLO 200µs, scheme none") {
		t.Errorf("first line %q", lines[0])
	}
	if !strings.Contains(lines[1], "completed") || !strings.Contains(lines[1], "\x1b[") || !strings.Contains(lines[2], "credits") {
		t.Errorf("header\n%s", strings.Join(lines, "\n"))
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "stopped after ") || !strings.Contains(last, "0 rejected") {
		t.Errorf("last line %q", last)
	}
}

// TestStoppedAndContinued stops the server's process: calls end at their deadlines meanwhile, and are answered again when it goes on.
func TestStoppedAndContinued(t *testing.T) {
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			var s *process
			labtest.Must(t, p.onServer(func() error {
				s = startProgram(t, asProgramVariable, append([]string{"serve", "-o", "jsonl", "--slo", "5ms"}, p.server...)...)
				return nil
			}))
			var ready serveReady
			if err := json.Unmarshal([]byte(next(t, s.lines, `"event":"ready"`)), &ready); err != nil {
				t.Fatal(err)
			}
			call := "call " + ready.Address + " echo hello --timeout 30s"
			p.run(t, call).check(t, exitOK, "hello")
			s.stop(t)
			p.run(t, "call "+ready.Address+" echo hello --timeout 100ms").check(t, exitCheck)
			s.signal(t, syscall.SIGCONT)
			p.run(t, call).check(t, exitOK, "hello")
			s.signal(t, syscall.SIGTERM)
			if code := s.exitOf(t); code != exitOK {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// TestSchemes serves under each scheme and offers it a load whose clients have their half of it.
func TestSchemes(t *testing.T) {
	p := places(t)[0]
	for _, name := range sw.Schemes() {
		t.Run(name, func(t *testing.T) {
			s := startServe(t, p.onServer, append(p.server, "--scheme", name, "--scheme-work", "bimodal:1us")...)
			r := p.run(t, "bench closed "+s.Address+quick+"--outstanding 6 -o json --scheme "+name)
			r.check(t, exitOK)
			var d benchData
			r.decode(t, &d)
			if s.Scheme != name || d.Scheme != name || d.Result.Counts.OK == 0 {
				t.Errorf("server %s, client %s, books %+v", s.Scheme, d.Scheme, d.Result.Counts)
			}
			s.end(t)
		})
	}
}
