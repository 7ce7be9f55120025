package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// A consumer asks for as many items as it has room for, and its producer, who would make them faster, waits.
func ExampleSession_Pull() {
	srv, err := sw.NewServer(sw.ServerConfig{Address: local})
	if err != nil {
		log.Fatal(err)
	}
	feed := sw.NewFeed(2)
	if err := srv.Handle("rows", feed.Serve); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()
	go func() {
		for i := range 5 {
			if err := feed.Put(ctx, fmt.Appendf(nil, "row %d", i)); err != nil {
				log.Fatal(err)
			}
		}
		feed.End()
	}()

	cli, err := sw.Dial(ctx, srv.Addr(), sw.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	rows := cli.Pull("rows")
	for err == nil {
		if err := rows.Request(3); err != nil { // room for three
			log.Fatal(err)
		}
		var row []byte
		for row, err = rows.Next(ctx); err == nil; row, err = rows.Next(ctx) {
			fmt.Printf("%s\n", row)
		}
		if errors.Is(err, sw.ErrNoDemand) {
			fmt.Println("made room")
			err = nil
		}
	}
	fmt.Println(errors.Is(err, io.EOF))
	if err := cli.Close(); err != nil {
		log.Fatal(err)
	}
	stop()
	fmt.Println(<-served)
	// Output:
	// row 0
	// row 1
	// row 2
	// made room
	// row 3
	// row 4
	// true
	// <nil>
}
