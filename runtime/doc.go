// Package runtime is the library: servers and clients of an RPC runtime whose tail stays flat when demand passes capacity.
//
// Import it as sw, since the standard library has a package of its name:
//
//	import sw "github.com/stillwater-rpc/stillwater/runtime"
//
//	srv, err := sw.NewServer(sw.ServerConfig{Interface: "eth1", Port: 7700, SLO: 200 * time.Microsecond})
//	err = srv.Handle("echo", func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
//		return append(reply, req.Payload...), nil
//	})
//	err = srv.Serve(ctx)
//
//	cli, err := sw.Dial(ctx, "10.0.0.1:7700", sw.ClientConfig{})
//	reply, err := cli.Call(ctx, "echo", payload, buf[:0])
//
// An [Endpoint] owns a port: AF_XDP sockets on the queues of an interface, or kernel UDP; IPv4, IPv6, or both at once. Servers and clients of a process may
// share one. A client that names no interface uses kernel UDP, so a library call never attaches an XDP program to anybody's
// interface. A server that names one and cannot have AF_XDP there falls back to kernel UDP, and says so in [Endpoint.Mode].
//
// All exported methods are safe for concurrent use unless they say otherwise.
package runtime
