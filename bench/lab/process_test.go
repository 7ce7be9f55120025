//go:build linux

package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"golang.org/x/sys/unix"
)

// roleVariable makes the test binary, executed again, play one part of a lab.
const roleVariable = "STILLWATER_LAB_TEST_ROLE"

// bound ends a test that hangs; no test waits for it when all is well.
const bound = 30 * time.Second

func TestMain(m *testing.M) {
	play := map[string]func() error{
		"child":  playChild,
		"deaf":   playDeaf,
		"mute":   playMute,
		"noisy":  playNoisy,
		"parent": playParent,
	}[os.Getenv(roleVariable)]
	if play == nil {
		os.Exit(m.Run())
	}
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// whereabouts is what a child knows of itself.
type whereabouts struct {
	PID        int       `json:"pid"`
	Namespace  string    `json:"namespace"`
	LinkIndex  int       `json:"link_index"`
	Place      lab.Place `json:"place"`
	Interfaces []string  `json:"interfaces"`
}

// playChild answers on UDP at its place, and pings its peer on demand.
func playChild() error {
	var place lab.Place
	var socket *net.UDPConn
	return lab.ServeChild(os.Stdin, os.Stdout, map[string]func(json.RawMessage) (any, error){
		lab.MethodGo: func(body json.RawMessage) (_ any, err error) {
			if err = json.Unmarshal(body, &place); err != nil {
				return nil, err
			}
			socket, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(place.Address.Addr(), 0)))
			if err == nil {
				go echo(socket)
			}
			return nil, err
		},
		"port":       func(json.RawMessage) (any, error) { return socket.LocalAddr().(*net.UDPAddr).Port, nil },
		"ping":       func(body json.RawMessage) (any, error) { return nil, ping(place, body) },
		"ping below": func(body json.RawMessage) (any, error) { return nil, ping(*place.Below, body) },
		"whereabouts": func(json.RawMessage) (any, error) {
			namespace, err := os.Readlink("/proc/self/ns/net")
			if err != nil {
				return nil, err
			}
			w := whereabouts{PID: os.Getpid(), Namespace: namespace, Place: place}
			link, err := net.InterfaceByName(place.Interface)
			if err != nil {
				return nil, err
			}
			w.LinkIndex = link.Index
			return w, nil
		},
		"refuse": func(json.RawMessage) (any, error) { return nil, errors.New("not today") },
		"hang":   func(json.RawMessage) (any, error) { select {} },
		"wait for the signal": func(json.RawMessage) (any, error) {
			got := make(chan os.Signal, 1)
			signal.Notify(got, syscall.SIGUSR1)
			fmt.Fprintln(os.Stderr, "listening")
			return (<-got).String(), nil
		},
		"die": func(json.RawMessage) (any, error) {
			fmt.Fprintln(os.Stderr, "the reactor is leaking")
			os.Exit(7)
			return nil, nil
		},
	})
}

func echo(socket *net.UDPConn) {
	buf := make([]byte, 64)
	for {
		n, from, err := socket.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		_, _ = socket.WriteToUDPAddrPort(buf[:n], from)
	}
}

func ping(place lab.Place, body json.RawMessage) error {
	var port uint16
	if err := json.Unmarshal(body, &port); err != nil {
		return err
	}
	socket, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(place.Peer, port)))
	if err != nil {
		return err
	}
	defer socket.Close()
	if err := socket.SetDeadline(time.Now().Add(bound)); err != nil {
		return err
	}
	if _, err := socket.Write([]byte("ping")); err != nil {
		return err
	}
	answer := make([]byte, 64)
	n, err := socket.Read(answer)
	if err == nil && string(answer[:n]) != "ping" {
		err = fmt.Errorf("the answer is %q", answer[:n])
	}
	return err
}

// playDeaf announces itself, answers "go", and then ignores the end of its input and every polite signal.
func playDeaf() error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := lab.ServeChild(os.Stdin, os.Stdout, nil); err != nil {
		return err
	}
	select {}
}

// playMute never announces itself.
func playMute() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// playNoisy prints where only the protocol may stand.
func playNoisy() error {
	fmt.Println("hello, operator")
	return playMute()
}

// playParent starts a lab, tells where its children are, and waits for its violent death.
func playParent() error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	made, err := lab.Start(ctx, childConfig("child", "child"))
	if err != nil {
		return err
	}
	var both [2]whereabouts
	for i, process := range []*lab.Process{made.Server, made.Client} {
		if err := process.Call(ctx, "whereabouts", nil, &both[i]); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(both); err != nil {
		return err
	}
	select {}
}

func childConfig(server, client string) lab.Config {
	node := func(role string) lab.Node {
		// A race-enabled program sleeps a second when it exits, unless told otherwise.
		return lab.Node{Path: "/proc/self/exe", Env: []string{roleVariable + "=" + role, "GORACE=atexit_sleep_ms=0"}}
	}
	return lab.Config{Server: node(server), Client: node(client)}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	return ctx
}

// eachKind runs a test in namespaces (as root) and on loopback (always).
func eachKind(t *testing.T, test func(t *testing.T, cfg lab.Config)) {
	t.Run("namespaces", func(t *testing.T) {
		labtest.Require(t)
		test(t, childConfig("child", "child"))
	})
	t.Run("loopback", func(t *testing.T) {
		cfg := childConfig("child", "child")
		cfg.Loopback = true
		test(t, cfg)
	})
}

func start(t *testing.T, cfg lab.Config) *lab.Lab {
	t.Helper()
	made, err := lab.Start(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() }) // what Close says is checked where the test means it
	return made
}

func locate(t *testing.T, process *lab.Process) (w whereabouts) {
	t.Helper()
	call(t, process, "whereabouts", nil, &w)
	if w.PID != process.PID() || w.Place != process.Place() {
		t.Errorf("the child says %+v, the parent says pid %d, %+v", w, process.PID(), process.Place())
	}
	return w
}

func call(t *testing.T, process *lab.Process, method string, request, reply any) {
	t.Helper()
	if err := process.Call(testContext(t), method, request, reply); err != nil {
		t.Fatal(err)
	}
}

// exchange sends a datagram from the client to the server and back.
func exchange(t *testing.T, made *lab.Lab) {
	t.Helper()
	var port int
	call(t, made.Server, "port", nil, &port)
	call(t, made.Client, "ping", port, nil)
}

func TestTwoProcessesTalk(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		eachKind(t, func(t *testing.T, cfg lab.Config) {
			cfg.IPv6 = ipv6
			talk(t, cfg)
		})
	}
}

func talk(t *testing.T, cfg lab.Config) {
	made := start(t, cfg)
	exchange(t, made)
	server, client, home := locate(t, made.Server), locate(t, made.Client), currentNamespace(t)
	apart := server.Namespace != client.Namespace && server.Namespace != home && client.Namespace != home
	if apart == cfg.Loopback {
		t.Errorf("namespaces: server %s, client %s, host %s", server.Namespace, client.Namespace, home)
	}
	// What the rest of the world takes for our namespace is that of our first thread, which must not have been lent.
	if first, err := os.Readlink("/proc/self/ns/net"); err != nil || first != home {
		t.Errorf("the first thread is in %s, %v; want %s", first, err, home)
	}
	if server.Place.Peer.Is6() != cfg.IPv6 || client.Place.Peer.Is6() != cfg.IPv6 {
		t.Errorf("IPv6 %v: %+v, %+v", cfg.IPv6, server.Place, client.Place)
	}
	if server.Place.Peer != client.Place.Address.Addr() || client.Place.Peer != server.Place.Address.Addr() {
		t.Errorf("places do not match: %+v, %+v", server.Place, client.Place)
	}
	for range 2 {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	}
	mustBeGone(t, server, client)
}

func TestErrorsOfACallNameTheirCause(t *testing.T) {
	cfg := childConfig("child", "child")
	cfg.Loopback = true
	made := start(t, cfg)
	for method, want := range map[string]string{
		"refuse": "the client says: not today",
		"absent": `no handler "absent"`,
	} {
		err := made.Client.Call(testContext(t), method, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("call %q: %v; want %q in it", method, err, want)
		}
	}
	var number int
	if err := made.Client.Call(testContext(t), "whereabouts", nil, &number); err == nil {
		t.Error("an answer of the wrong type was decoded")
	}
	exchange(t, made) // no error of a call ends the child
}

// TestCallGivenUp checks that the late answer of a call given up is not taken for that of the next one.
func TestCallGivenUp(t *testing.T) {
	cfg := childConfig("child", "child")
	cfg.Loopback = true
	listening := make(chan struct{}, 1)
	cfg.Client.Stderr = writerFunc(func(p []byte) (int, error) {
		if string(p) != "client: listening\n" {
			t.Errorf("standard error has %q", p)
		}
		listening <- struct{}{}
		return len(p), nil
	})
	made := start(t, cfg)
	ctx, cancel := context.WithCancel(testContext(t))
	result := make(chan error, 1)
	go func() { result <- made.Client.Call(ctx, "wait for the signal", nil, nil) }()
	<-listening
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
	if err := made.Client.Kill(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	locate(t, made.Client)
}

func TestCallToAChildThatDoesNotRead(t *testing.T) {
	cfg := childConfig("child", "child")
	cfg.Loopback = true
	made := start(t, cfg)
	go func() { _ = made.Client.Call(context.Background(), "hang", nil, nil) }()
	ctx, cancel := context.WithCancel(testContext(t))
	result := make(chan error, 1)
	go func() { result <- made.Client.Call(ctx, "port", strings.Repeat("x", 1<<20), nil) }() // more than the pipe holds
	waitPipeFull(t, made.Client.PID())
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("call cut short: %v", err)
	}
	if err := made.Client.Call(testContext(t), "port", nil, nil); err == nil || !strings.Contains(err.Error(), "cut in the middle") {
		t.Errorf("call after one that was cut short: %v", err)
	}
	if err := made.Client.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Errorf("close after a kill on purpose: %v", err)
	}
}

// waitPipeFull returns when nothing more can be written to the child's standard input.
func waitPipeFull(t *testing.T, pid int) {
	t.Helper()
	pipe, err := os.Open(fmt.Sprintf("/proc/%d/fd/0", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	size, err := unix.FcntlInt(pipe.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(bound); ; time.Sleep(time.Millisecond) {
		waiting, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		if waiting == size {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes wait in a pipe of %d", waiting, size)
		}
	}
}

func TestRestartInTheSameNamespace(t *testing.T) {
	eachKind(t, func(t *testing.T, cfg lab.Config) {
		made := start(t, cfg)
		exchange(t, made)
		before := locate(t, made.Server)
		if err := made.Server.Kill(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := made.Server.Wait(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if err := made.Server.Kill(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("kill of the dead: %v", err)
		}
		for range 2 { // the second time it is alive and leaves by itself
			if err := made.Server.Restart(testContext(t)); err != nil {
				t.Fatal(err)
			}
			after := locate(t, made.Server)
			if after.PID == before.PID || after.Namespace != before.Namespace || after.LinkIndex != before.LinkIndex {
				t.Errorf("before %+v, after %+v", before, after)
			}
			exchange(t, made)
		}
		if err := made.Close(); err != nil {
			t.Error(err)
		}
		mustBeGone(t, before)
	})
}

func TestDeathOfAChild(t *testing.T) {
	eachKind(t, func(t *testing.T, cfg lab.Config) {
		made := start(t, cfg)
		server, client := locate(t, made.Server), locate(t, made.Client)
		for range 2 { // the call that it dies of, and one that comes later
			err := made.Client.Call(testContext(t), "die", nil, nil)
			dead, ok := errors.AsType[*lab.DeadError](err)
			if !ok {
				t.Fatalf("call to the dead: %v", err)
			}
			if dead.State != "exit status 7" || dead.Role != lab.RoleClient || dead.PID != client.PID ||
				len(dead.Stderr) != 1 || dead.Stderr[0] != "the reactor is leaking" {
				t.Errorf("notice of death: %+v", dead)
			}
		}
		if err := made.Close(); err == nil || !strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("close says %v of the dead client", err)
		}
		mustBeGone(t, server, client)
	})
}

func TestDeafChildIsKilled(t *testing.T) {
	cfg := childConfig("deaf", "child")
	cfg.Loopback = true
	cfg.Grace = 50 * time.Millisecond
	made := start(t, cfg)
	pid := made.Server.PID()
	first := made.Close()
	if first == nil || !strings.Contains(first.Error(), "was killed") {
		t.Errorf("close: %v", first)
	}
	if second := made.Close(); second != first {
		t.Errorf("second close: %v", second)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the deaf child: %v", err)
	}
}

func TestStartThatFails(t *testing.T) {
	descriptors := descriptorCount(t)
	mute, noisy, absent := childConfig("mute", "child"), childConfig("child", "noisy"), childConfig("child", "child")
	absent.Client.Path = "/nonexistent/program"
	for want, cfg := range map[string]lab.Config{
		"does not announce itself":     mute,
		`printed "hello, operator"`:    noisy,
		"start the client: fork/exec ": absent,
	} {
		cfg.Loopback = true
		ctx, cancel := testContext(t), func() {}
		if want == "does not announce itself" {
			ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond) // it fails however late this comes
		}
		made, err := lab.Start(ctx, cfg)
		cancel()
		if made != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("start: %v; want %q in it", err, want)
		}
	}
	if now := descriptorCount(t); now != descriptors {
		t.Errorf("%d open descriptors before, %d after", descriptors, now)
	}
}

func TestServeChild(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader(`{"id":1,"call":"go","body":{}}` + "\n" + `{"id":2,"call":"double","body":21}` + "\n" +
		`{"id":3,"call":"impossible"}` + "\n" + `{"id":4,"call":"wordless"}` + "\n")
	err := lab.ServeChild(in, &out, map[string]func(json.RawMessage) (any, error){
		"double": func(body json.RawMessage) (any, error) {
			var n int
			err := json.Unmarshal(body, &n)
			return 2 * n, err
		},
		"impossible": func(json.RawMessage) (any, error) { return make(chan int), nil },
		"wordless":   func(json.RawMessage) (any, error) { return nil, errors.New("") },
	})
	want := `{"ready":true}
{"id":1}
{"id":2,"body":42}
{"id":3,"error":"encode the result of \"impossible\": json: unsupported type: chan int"}
{"id":4,"error":"error without a text"}
`
	if err != nil || out.String() != want {
		t.Errorf("got %v and\n%swant\n%s", err, out.String(), want)
	}
	if err := lab.ServeChild(strings.NewReader("hello\n"), io.Discard, nil); err == nil {
		t.Error("a line that is no call was accepted")
	}
	broken := writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })
	if err := lab.ServeChild(strings.NewReader(""), broken, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("broken output: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
