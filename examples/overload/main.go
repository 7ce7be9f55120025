// Command overload is a caller that would rather have an old answer than wait: when the server refuses, or grants no credit in
// time, it says so at once, and the caller degrades instead of queueing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

const (
	service  = 5 * time.Millisecond   // one price costs the server so much, and it makes one at a time
	patience = 100 * time.Millisecond // so about 20 of the callers below can have a fresh one
	callers  = 100
)

func run(ctx context.Context, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	srv, err := sw.NewServer(sw.ServerConfig{Address: netip.MustParseAddr("127.0.0.1"), SLO: patience, Workers: 1, Parallel: 1})
	if err != nil {
		return err
	}
	err = srv.Handle("price", func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
		time.Sleep(service)
		return append(reply, "42.10"...), nil
	})
	if err != nil {
		return err
	}
	go srv.Serve(ctx)
	cli, err := sw.Dial(ctx, srv.Addr(), sw.ClientConfig{})
	if err != nil {
		return err
	}
	defer cli.Close()

	var group sync.WaitGroup
	kinds := make(chan string, callers)
	for range callers {
		group.Go(func() {
			_, kind := price(ctx, cli)
			kinds <- kind
		})
	}
	group.Wait()
	close(kinds)
	count := map[string]int{}
	for kind := range kinds {
		count[kind]++
	}
	fmt.Fprintf(out, "%d fresh, %d rejected, %d without credit, %d late, %d failed\n",
		count["fresh"], count["rejected"], count["no credit"], count["late"], count["failed"])
	return nil
}

// yesterday is what the caller falls back to.
const yesterday = "41.80"

// price asks for a price, and says what came of it.
func price(ctx context.Context, cli *sw.Client) (price, kind string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply, err := cli.Call(ctx, "price", nil, nil)
	rejected, isRejected := errors.AsType[*sw.RejectedError](err)
	switch {
	case err == nil:
		return string(reply), "fresh"
	case isRejected && (rejected.Reason == sw.RejectOverloaded || rejected.Reason == sw.RejectExpired):
		return yesterday, "rejected" // it never ran; a retry would only add to the load
	case errors.Is(err, sw.ErrNoCredit):
		return yesterday, "no credit" // it was never sent
	case errors.Is(err, sw.ErrDeadline):
		return yesterday, "late" // it may have run
	}
	return yesterday, "failed"
}
