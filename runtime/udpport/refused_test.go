//go:build linux

package udpport_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/runtime/udpport"
)

// TestRefusedConnectionIsNotFatal sends to a port that nobody listens on: the ICMP message that comes back must
// neither end the port nor hide what arrives meanwhile.
func TestRefusedConnectionIsNotFatal(t *testing.T) {
	a, b := open(t, udpport.Config{}), open(t, udpport.Config{})
	closed := open(t, udpport.Config{})
	nobody := closed.LocalAddr()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptInt(udpport.FD(a), unix.IPPROTO_IP, unix.IP_RECVERR, 1); err != nil {
		t.Fatal(err) // without it the kernel reports nothing to an unconnected socket, and there is nothing to test
	}
	send(t, a, nobody, []byte("refused"))
	a.Kick()
	send(t, b, a.LocalAddr(), []byte("arrives"))
	b.Kick()
	if got := receive(t, a, 1); string(got[0].Payload) != "arrives" {
		t.Errorf("received %q", got[0].Payload)
	}
	send(t, a, nobody, []byte("refused"))
	a.Kick()
	for range 3 { // two refusals can cost two of these at most
		send(t, a, b.LocalAddr(), []byte("sent"))
		a.Kick()
	}
	if got := receive(t, b, 1); string(got[0].Payload) != "sent" {
		t.Errorf("received %q", got[0].Payload)
	}
	if s := a.Stats(); s.Sent+s.SendDropped != 5 || s.SendDropped > 2 {
		t.Errorf("the sender counts %+v", s)
	}
}
