package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

var local = netip.MustParseAddr("127.0.0.1")

// serveEcho runs a server for the examples that show clients.
func serveEcho() (address string, stop func()) {
	srv, err := sw.NewServer(sw.ServerConfig{Address: local, SLO: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	if err := srv.Handle("echo", echo); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()
	return srv.Addr(), func() { cancel(); <-served }
}

// A client needs no interface, no rights and no more than an address. Every call is bounded by its context.
func ExampleDial() {
	address, stop := serveEcho()
	defer stop()

	cli, err := sw.Dial(context.Background(), address, sw.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer cli.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := cli.Call(ctx, "echo", []byte("still water"), nil)
	fmt.Printf("%s, %v\n", reply, err)

	_, err = cli.Call(ctx, "none", nil, nil)
	if rejected, ok := errors.AsType[*sw.RejectedError](err); ok {
		fmt.Println(rejected.Reason == sw.RejectUnknownMethod)
	}
	// Output:
	// still water, <nil>
	// true
}

// A server registers its methods and serves until its context ends; then it drains. It names an Interface to have AF_XDP.
func ExampleNewServer() {
	srv, err := sw.NewServer(sw.ServerConfig{Address: local, SLO: 100 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	err = srv.Handle("greet", func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		if len(req.Payload) == 0 {
			return nil, errors.New("greet whom?")
		}
		return fmt.Appendf(reply, "hello, %s", req.Payload), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()

	cli, err := sw.Dial(ctx, srv.Addr(), sw.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := cli.Call(ctx, "greet", []byte("world"), nil)
	fmt.Printf("%s, %v\n", reply, err)
	_, err = cli.Call(ctx, "greet", nil, nil)
	fmt.Println(err)
	if err := cli.Close(); err != nil {
		log.Fatal(err)
	}
	cancel()
	fmt.Println(<-served)
	// Output:
	// hello, world, <nil>
	// greet whom?
	// <nil>
}

// Start has many calls under way from one goroutine. A Call and its buffers can be used again once Done was called.
func ExampleSession_Start() {
	address, stop := serveEcho()
	defer stop()
	cli, err := sw.Dial(context.Background(), address, sw.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer cli.Close()

	const count = 10
	done := make(chan *sw.Call, count) // with room for all, since Done must not block
	for i := range count {
		cli.Start(&sw.Call{
			Method: sw.MethodOf("echo"), Payload: []byte{byte(i)}, User: i,
			Done: func(c *sw.Call) { done <- c },
		})
	}
	good := 0
	for range count {
		c := <-done
		if c.Err() == nil && int(c.Reply[0]) == c.User.(int) {
			good++
		}
	}
	fmt.Println(good, "of", count)
	// Output: 10 of 10
}
