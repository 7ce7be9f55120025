package dispatcher

import (
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/wire"
)

// What a handler waited for without being anybody's load is no service: neither the server nor its client expects it of the next one.
func TestIdleIsNoService(t *testing.T) {
	const service, idle = 10 * time.Microsecond, 9 * time.Microsecond
	for _, c := range []struct{ idle, want time.Duration }{{0, service}, {idle, service - idle}, {service, 0}, {2 * service, 0}} {
		w := newNetwork(t, 1)
		server, client := w.node(1, Config{TrustedNetwork: true}), w.node(2, Config{})
		server.serve(service, 80*time.Microsecond, credit.NewNone(0))
		server.d.server.methods[wire.MethodOf("work")].Run = func(r *Request) { r.Idle = c.idle }
		s, err := client.d.Open(w.now, server.addr)
		if err != nil {
			t.Fatal(err)
		}
		k := client.call(s, 1, 0)
		w.soon(time.Millisecond)
		if got := server.d.Snapshot(); k.Outcome != OutcomeOK || got.Completed != 1 || got.Busy != c.want || server.d.ExpectedService() != c.want || k.Timing.Service != c.want {
			t.Errorf("idle %v: %v, busy %v, expected %v, told %v; want %v", c.idle, k.Outcome, got.Busy, server.d.ExpectedService(), k.Timing.Service, c.want)
		}
	}
}
