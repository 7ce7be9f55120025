package runtime_test

import (
	"context"
	"testing"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// TestDownstreamPressesBack has a leaf that lets a session have two requests there at most, and stands still. The server in the middle, whose handlers wait for it, has
// no more credits than that while they do, and its own again afterwards.
func TestDownstreamPressesBack(t *testing.T) {
	const callers, atLeaf, parallel = 20, 2, 16
	p := places(t)[0]
	g := newGate()
	leaf := serve(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"gate": g.handle})
	endpoint := p.client
	endpoint.Slots = atLeaf
	shared, err := sw.Open(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.Close() })
	toLeaf := dial(t, p, leaf.Addr(), sw.ClientConfig{Shared: shared})
	middle, cli := start(t, p, sw.ServerConfig{SLO: calm, Parallel: parallel, Downstream: []*sw.Session{&toLeaf.Session}}, map[string]sw.Handler{
		"pass": func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			return toLeaf.Call(ctx, "gate", req.Payload, reply)
		},
	})
	pool := func() uint64 { return statsOf(t, middle.Endpoint()).Pool }
	if _, err := cli.Call(timeout(t, guard), "none", nil, nil); err == nil || pool() < parallel { // any answer says that it serves
		t.Fatalf("%v; a pool of %d", err, pool())
	}
	var calls []<-chan error
	for range callers {
		calls = append(calls, later(session(t, cli), context.Background(), "pass", nil))
	}
	await(t, "the middle has no more credits than the leaf granted", func() bool { return pool() <= atLeaf })
	g.open()
	for _, call := range calls {
		if err := within(t, "a call", call); err != nil {
			t.Error(err)
		}
	}
	await(t, "the middle has its own pool again", func() bool { return pool() >= parallel })
	audit(t, leaf.Endpoint(), middle.Endpoint(), cli.Endpoint(), shared)
}

func TestDownstreamNil(t *testing.T) {
	if _, err := sw.NewServer(sw.ServerConfig{Downstream: []*sw.Session{nil}}); err == nil {
		t.Error("no session was taken for one")
	}
}
