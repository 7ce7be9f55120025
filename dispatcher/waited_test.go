package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// arriving is a port at which certain datagrams arrive.
type arriving struct {
	Port
	batch []Datagram
}

func (*arriving) PayloadMax() int { return 1472 }

func (p *arriving) Receive(_ clock.Time, batch []Datagram) int {
	n := copy(batch, p.batch)
	p.batch = nil
	return n
}

// TestPacketAge is the age of the oldest packet, without what it waited for a dispatcher that was away: for this one, or for the one that received it.
func TestPacketAge(t *testing.T) {
	const us = time.Microsecond
	start := clock.Time(time.Second)
	at := func(d time.Duration) clock.Time { return start.Add(d) }
	for name, test := range map[string]struct {
		away  time.Duration // this dispatcher, until 100 us
		batch []Datagram
		want  time.Duration
	}{
		"nothing":                    {0, nil, 0},
		"the oldest":                 {0, []Datagram{{Arrival: at(90 * us)}, {Arrival: at(70 * us)}, {Arrival: at(95 * us)}}, 30 * us},
		"while away":                 {20 * us, []Datagram{{Arrival: at(90 * us)}}, 0},
		"while away and before":      {20 * us, []Datagram{{Arrival: at(70 * us)}}, 10 * us},
		"while another one was away": {0, []Datagram{{Arrival: at(0), Since: at(95 * us)}, {Arrival: at(98 * us)}}, 5 * us},
		"while both were":            {20 * us, []Datagram{{Arrival: at(0), Since: at(70 * us)}}, 10 * us},
	} {
		p := &arriving{batch: test.batch}
		d := New(Config{}, p)
		d.now = at(100*us - test.away)
		d.Receive(at(100 * us))
		if d.server.packetAge != test.want {
			t.Errorf("%s: %v, want %v", name, d.server.packetAge, test.want)
		}
	}
}

// A packet that arrives after its turn has read the clock did not wait before it arrived: the parts of a call's time stay within the whole.
func TestRequestDoesNotWaitBeforeItArrives(t *testing.T) {
	w := newNetwork(t, 1)
	server, client := w.node(1, Config{TrustedNetwork: true}), w.node(2, Config{})
	server.serve(10*time.Microsecond, 80*time.Microsecond, credit.NewNone(0))
	s, err := client.d.Open(w.now, server.addr)
	if err != nil {
		t.Fatal(err)
	}
	client.call(s, 1, 0)
	w.run(w.now.Add(time.Millisecond))
	const early = 3 * time.Microsecond
	server.early = early
	client.call(s, 2, 0)
	c := client.call(s, 3, 0)
	w.run(w.now.Add(time.Millisecond))
	if want := server.service - early; c.Outcome != OutcomeOK || c.Timing.RequestQueue != want {
		t.Errorf("outcome %v, request queue %v, want %v", c.Outcome, c.Timing.RequestQueue, want)
	}
}
