//go:build linux

package lab_test

import (
	"bytes"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

func TestPairCarriesDatagrams(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	var server, client *net.UDPConn
	if err := pair.B.Do(func() (err error) {
		server, err = net.ListenUDP("udp4", &net.UDPAddr{IP: pair.B.Address.Addr().AsSlice()})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := pair.A.Do(func() (err error) {
		client, err = net.DialUDP("udp4", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []byte("over the pair")
	if _, err := client.Write(want); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 64)
	if err := server.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := server.Read(got)
	if err != nil || !bytes.Equal(got[:n], want) {
		t.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
	for _, closer := range []interface{ Close() error }{server, client} {
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPairIPv6 binds at once to both addresses of both ends, which the kernel refuses for an address that waits to be known as unique. Without
// the option there is no IPv6.
func TestPairIPv6(t *testing.T) {
	for _, on := range []bool{true, false} {
		pair := labtest.NewPair(t, lab.PairConfig{IPv6: on})
		for _, end := range []*lab.End{pair.A, pair.B} {
			if end.Address6.IsValid() != on {
				t.Fatalf("IPv6 %v: address %v", on, end.Address6)
			}
			var addrs []net.Addr
			if err := end.Do(func() error {
				device, err := net.InterfaceByName(end.Interface)
				if err == nil {
					addrs, err = device.Addrs()
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			want := 1
			if on {
				want = 3 // with the link-local one
			}
			if len(addrs) != want {
				t.Errorf("IPv6 %v: %v", on, addrs)
			}
			for _, a := range addrs {
				if err := end.Do(func() error {
					conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: a.(*net.IPNet).IP, Zone: end.Interface})
					if err == nil {
						conn.Close()
					}
					return err
				}); err != nil {
					t.Errorf("%v: %v", a, err)
				}
			}
		}
	}
}

// TestDoRestoresTheThread checks that the host's namespace is what the goroutine sees after Do, also when fn panics.
func TestDoRestoresTheThread(t *testing.T) {
	namespace, err := lab.NewNamespace()
	labtest.Must(t, err)
	defer namespace.Close()
	home := currentNamespace(t)
	var inside string
	func() {
		defer func() { _ = recover() }()
		_ = namespace.Do(func() error {
			inside = currentNamespace(t)
			panic("leave by panic")
		})
	}()
	if inside == home || inside == "" {
		t.Errorf("inside Do the namespace was %q, outside %q", inside, home)
	}
	if after := currentNamespace(t); after != home {
		t.Errorf("after Do the namespace is %q, want %q", after, home)
	}
}

func currentNamespace(t *testing.T) string {
	t.Helper()
	name, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return name
}
