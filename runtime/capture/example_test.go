package capture_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
	"github.com/stillwater-rpc/stillwater/runtime/capture"
)

// A client's endpoint writes down what it sends and receives.
func Example() {
	dir, err := os.MkdirTemp("", "capture")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	tap, err := capture.Create(filepath.Join(dir, "calls.pcapng"), capture.Config{SnapBytes: 128})
	if err != nil {
		panic(err)
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	srv, err := sw.NewServer(sw.ServerConfig{Address: loopback, SLO: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()

	cli, err := sw.Dial(ctx, srv.Addr(), sw.ClientConfig{Endpoint: sw.EndpointConfig{Address: loopback, WrapPort: tap.Wrap}})
	if err != nil {
		panic(err)
	}
	_, err = cli.Call(ctx, "nothing that the server has", nil, nil)
	fmt.Println(err)
	fmt.Println("closed:", cli.Close()) // the file is complete
	fmt.Println("captured:", tap.Stats().Captured > 0, "missed:", tap.Stats().Missed)
	stop()
	fmt.Println("served:", <-served)
	// Output:
	// rejected: unknown method
	// closed: <nil>
	// captured: true missed: 0
	// served: <nil>
}
