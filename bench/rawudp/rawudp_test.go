//go:build linux

package rawudp_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bench/rawudp"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// serve runs an echo server until the test ends.
func serve(t testing.TB) netip.AddrPort {
	t.Helper()
	server, err := rawudp.NewServer(loopback)
	if err != nil {
		t.Fatal(err)
	}
	stop := new(atomic.Bool)
	done := make(chan error)
	go func() { done <- server.Run(stop) }()
	t.Cleanup(func() {
		stop.Store(true)
		if err := errors.Join(<-done, server.Close()); err != nil {
			t.Error(err)
		}
	})
	return server.Addr()
}

func TestClosedLoop(t *testing.T) {
	addr := serve(t)
	for _, c := range []struct{ outstanding, size int }{{1, rawudp.PayloadMin}, {64, 64}, {200, rawudp.PayloadMax}} {
		client, err := rawudp.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		cfg := rawudp.RunConfig{Outstanding: c.outstanding, PayloadBytes: c.size, Duration: 50 * time.Millisecond}
		result := new(rawudp.Result)
		for result.Count == 0 { // once, unless the machine was away for all of the duration
			if result, err = client.Run(cfg); err != nil {
				t.Fatal(err)
			}
		}
		if result.RoundTrips.TotalCount() != result.Count || result.Elapsed < cfg.Duration || result.PerSecond() <= 0 {
			t.Errorf("%d outstanding of %d bytes: %+v", c.outstanding, c.size, result)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestServerEchoes checks the bytes, with the standard library as the client.
func TestServerEchoes(t *testing.T) {
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(serve(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 2000)
	for size := 1; size <= rawudp.PayloadMax; size += 97 {
		want := fmt.Sprintf("%0*d", size, size)
		if _, err := c.Write([]byte(want)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(buffer); err != nil || string(buffer[:n]) != want {
			t.Fatalf("%d bytes came back as %q, %v", size, buffer[:n], err)
		}
	}
}

// TestLostEchoesAreGivenUp talks to a socket that never answers.
func TestLostEchoesAreGivenUp(t *testing.T) {
	deaf, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	client, err := rawudp.Dial(deaf.LocalAddr().(*net.UDPAddr).AddrPort())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	result, err := client.Run(rawudp.RunConfig{Outstanding: 3, PayloadBytes: 64, Duration: 500 * time.Millisecond})
	if err != nil || result.Count != 0 || result.Lost%3 != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestNoServer(t *testing.T) {
	server, err := rawudp.NewServer(loopback)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	client, err := rawudp.Dial(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Run(rawudp.RunConfig{Outstanding: 1, PayloadBytes: 64, Duration: time.Minute}); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("without a server: %v", err)
	}
	if _, err := client.Run(rawudp.RunConfig{}); err == nil {
		t.Error("an empty configuration runs")
	}
}

// BenchmarkEcho prints the baseline: two spinning goroutines over loopback.
func BenchmarkEcho(b *testing.B) {
	addr := serve(b)
	for _, outstanding := range []int{1, 64} {
		b.Run(fmt.Sprintf("outstanding=%d", outstanding), func(b *testing.B) {
			client, err := rawudp.Dial(addr)
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			var result *rawudp.Result
			for b.Loop() {
				result, err = client.Run(rawudp.RunConfig{Outstanding: outstanding, PayloadBytes: 64, Duration: 100 * time.Millisecond})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(result.PerSecond(), "echoes/s")
			b.ReportMetric(float64(result.RoundTrips.ValueAtQuantile(50)), "p50-ns")
			b.ReportMetric(float64(result.RoundTrips.ValueAtQuantile(99)), "p99-ns")
			b.ReportMetric(0, "ns/op")
		})
	}
}
