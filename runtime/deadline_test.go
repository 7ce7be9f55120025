package runtime_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// TestDeadlineIsTyped calls where nobody answers. The context's timer and the loop's are set to the same instant; whichever
// is first, the caller learns whether the request was sent.
func TestDeadlineIsTyped(t *testing.T) {
	cli, err := sw.Dial(t.Context(), "127.0.0.1:9", sw.ClientConfig{Endpoint: sw.EndpointConfig{
		Address: netip.MustParseAddr("127.0.0.1"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := cli.Call(ctx, "echo", nil, nil)
		cancel()
		if !errors.Is(err, sw.ErrDeadline) && !errors.Is(err, sw.ErrNoCredit) {
			t.Fatalf("call ended with %v", err)
		}
	}
}
