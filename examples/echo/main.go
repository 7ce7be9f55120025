// Command echo is the smallest whole: a server, a client, one call.
package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	// This is kernel UDP. With Interface: "eth1", as root, it is AF_XDP, and nothing else changes.
	srv, err := sw.NewServer(sw.ServerConfig{Address: netip.MustParseAddr("127.0.0.1")})
	if err != nil {
		return err
	}
	err = srv.Handle("echo", func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		return append(reply, req.Payload...), nil
	})
	if err != nil {
		return err
	}
	serving, drain := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(serving) }()

	if err := call(ctx, srv.Addr(), out); err != nil {
		drain()
		return err
	}
	drain() // new requests are refused, those under way are answered, the port is closed
	return <-served
}

func call(ctx context.Context, address string, out io.Writer) error {
	cli, err := sw.Dial(ctx, address, sw.ClientConfig{})
	if err != nil {
		return err
	}
	defer cli.Close()
	reply, err := cli.Call(ctx, "echo", []byte("hello"), nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", reply)
	return nil
}
