// Command middle is a server that calls another one to answer: over the port that it serves on, and with what is left of its
// caller's time. Its handlers block while they wait, and the port is polled all the same.
package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "middle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	back, err := serve(ctx, "time left", timeLeft)
	if err != nil {
		return err
	}
	middle, err := sw.NewServer(config)
	if err != nil {
		return err
	}
	onward, err := sw.Dial(ctx, back.Addr(), sw.ClientConfig{Shared: middle.Endpoint()})
	if err != nil {
		return err
	}
	err = middle.Handle("ask", func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		// The context carries the caller's deadline: whoever is behind us gets what is left of it, and gives up when the caller does.
		return onward.Call(ctx, "time left", req.Payload, append(reply, "behind the middle tier: "...))
	})
	if err != nil {
		return err
	}
	go middle.Serve(ctx)

	front, err := sw.Dial(ctx, middle.Addr(), sw.ClientConfig{})
	if err != nil {
		return err
	}
	defer front.Close()
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	reply, err := front.Call(limited, "ask", nil, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", reply)
	return nil
}

var config = sw.ServerConfig{Address: netip.MustParseAddr("127.0.0.1")}

// timeLeft answers how many seconds its caller still has, in full.
func timeLeft(ctx context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return append(reply, "no deadline"...), nil
	}
	return fmt.Appendf(reply, "%d s left of 10", time.Until(deadline)/time.Second), nil
}

// serve runs a server of one method.
func serve(ctx context.Context, method string, h sw.Handler) (*sw.Server, error) {
	srv, err := sw.NewServer(config)
	if err != nil {
		return nil, err
	}
	if err := srv.Handle(method, h); err != nil {
		return nil, err
	}
	go srv.Serve(ctx)
	return srv, nil
}
