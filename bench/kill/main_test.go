//go:build linux

package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

func TestMain(m *testing.M) {
	prove.Children()
	os.Exit(m.Run())
}

// What must hold however slow the machine is: nothing stays attached, each request has one outcome, and the books agree.
func TestKillKeepsTheBooks(t *testing.T) {
	labtest.Require(t)
	r := prove.NewRun("kill", 1)
	s := settings{
		sessions: 20, load: 0.1, deadline: 20 * time.Millisecond,
		before: 100 * time.Millisecond, after: 500 * time.Millisecond, calibrate: 50 * time.Millisecond,
	}
	lives, err := measure(context.Background(), r, s)
	if err != nil {
		t.Fatal(err)
	}
	l := lives[0]
	if l.Attached || l.Violations > 0 || len(l.Disagreements) > 0 {
		t.Errorf("attached %v, violations %q, disagreements %q", l.Attached, l.Examples, l.Disagreements)
	}
	if l.Requests != l.Answered+l.Rejected+l.NeverSent+l.Unknown || l.Pings.Sent == 0 {
		t.Errorf("%+v", l)
	}
	if err := show(r, s, lives); err != nil {
		t.Fatal(err)
	}
}

func TestAccount(t *testing.T) {
	const ms = clock.Time(time.Millisecond)
	for _, test := range []struct {
		name           string
		sent, answered []clock.Time
		want           pings
	}{
		{"none", nil, nil, pings{}},
		{"all answered", []clock.Time{1 * ms, 2 * ms}, []clock.Time{2 * ms, 5 * ms}, pings{Sent: 2, RoundTrip: 3 * time.Millisecond}},
		{
			"two lost in a row", []clock.Time{1 * ms, 2 * ms, 3 * ms, 7 * ms}, []clock.Time{2 * ms, 0, 0, 8 * ms},
			pings{Sent: 4, Lost: 2, Outage: 5 * time.Millisecond, RoundTrip: time.Millisecond},
		},
		{
			"lost to the end", []clock.Time{1 * ms, 2 * ms, 9 * ms}, []clock.Time{2 * ms, 0, 0},
			pings{Sent: 3, Lost: 2, Outage: 7 * time.Millisecond, RoundTrip: time.Millisecond},
		},
	} {
		if got := account(test.sent, test.answered); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestEchoRequest(t *testing.T) {
	message := echoRequest(0xbeef, 0x1_0002)
	sum := uint32(0)
	for i := 0; i < len(message); i += 2 {
		sum += uint32(message[i])<<8 | uint32(message[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum != 0xffff {
		t.Errorf("checksum: the sum is %04x", sum)
	}
	answer := append([]byte{0: 0x45, 19: 0}, message[:]...)
	p := &pinger{id: 0xbeef}
	if _, ok := p.parse(answer); ok {
		t.Error("a request was taken for an answer")
	}
	answer[20] = icmpReply
	if n, ok := p.parse(answer); !ok || n != 0x1_0002 {
		t.Errorf("number %x, %v", n, ok)
	}
	for short := range answer {
		if _, ok := p.parse(answer[:short]); ok {
			t.Errorf("%d bytes were taken for an answer", short)
		}
	}
	p.id++
	if _, ok := p.parse(answer); ok {
		t.Error("somebody else's answer was taken")
	}
}
