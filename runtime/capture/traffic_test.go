package capture

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/dispatcher/faults"
	sw "github.com/stillwater-rpc/stillwater/runtime"
	"github.com/stillwater-rpc/stillwater/wire"
)

// pair is two ends of a wire that AF_XDP is on.
type pair struct {
	server, client     sw.EndpointConfig
	onServer, onClient func(func() error) error
}

// end is an endpoint with a
type end struct {
	path string
	cfg  sw.EndpointConfig
	last dispatcher.PortStats // when it was closed
	tap  *Tap
}

// newEnd puts a tap on what the port does, behind the faults if there are any: as the dispatcher sees it.
func newEnd(t *testing.T, name string, cfg sw.EndpointConfig, bad faults.Config) *end {
	t.Helper()
	e := &end{path: filepath.Join(t.TempDir(), name+".pcapng"), cfg: cfg}
	var err error
	if e.tap, err = Create(e.path, Config{Name: name}); err != nil {
		t.Fatal(err)
	}
	e.cfg.WrapPort = func(port dispatcher.Port) dispatcher.Port {
		return &observed{e.tap.Wrap(faults.Wrap(port, bad)), e}
	}
	return e
}

// observed keeps a port's last counters.
type observed struct {
	dispatcher.Port
	end *end
}

func (o *observed) Close() error {
	before := o.Port.Stats()
	err := o.Port.Close()
	o.end.last = before
	return err
}

// call has a server at one end and a client at the other, makes calls until the client has made count, and closes both.
func call(t *testing.T, server, client *end, onServer, onClient func(func() error) error, count int) {
	t.Helper()
	var srv *sw.Server
	var cli *sw.Client
	err := onServer(func() (err error) {
		srv, err = sw.NewServer(sw.ServerConfig{Endpoint: server.cfg, SLO: time.Second})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Handle("echo", func(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
		return append(reply, req.Payload...), nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	served := make(chan error, 1)
	serving, stop := context.WithCancel(ctx)
	go func() { served <- srv.Serve(serving) }()
	err = onClient(func() (err error) {
		cli, err = sw.Dial(ctx, srv.Addr(), sw.ClientConfig{Endpoint: client.cfg})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		if _, err := cli.Call(ctx, "echo", make([]byte, i%1000), nil); err != nil {
			t.Errorf("call %d: %v", i, err)
			break
		}
	}
	err = cli.Close()
	stop()
	if err := errors.Join(err, <-served); err != nil {
		t.Error(err)
	}
}

// books are what a file says.
type books struct {
	in, out, refused, missing uint64
	received, dropped         uint64 // of the last statistics

	came, went map[string]int // packets by their bytes
}

// audit reads a file with another implementation, and checks every packet in it.
func (e *end) audit(t *testing.T) (b books) {
	t.Helper()
	f, err := os.Open(e.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.NgReaderOptions{
		StatisticsCallback: func(_ int, s pcapgo.NgInterfaceStatistics) {
			b.received, b.dropped = s.PacketsReceived, s.PacketsDropped
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.came, b.went = map[string]int{}, map[string]int{}
	now := time.Now()
	for {
		data, info, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return b
		}
		if err != nil {
			t.Fatal(err)
		}
		packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.Default)
		udp, ok := packet.TransportLayer().(*layers.UDP)
		if !ok {
			t.Fatalf("no UDP: %v", packet)
		}
		if _, err := wire.ParsePacket(udp.Payload); err != nil || info.Length != len(data) {
			t.Fatalf("%d bytes of %d: %v", len(data), info.Length, err)
		}
		if options.DropCount != nil {
			b.missing += *options.DropCount
		}
		if age := now.Sub(info.Timestamp).Abs(); age > 2*patience {
			t.Errorf("a packet of %v, and it is %v", info.Timestamp, now)
		}
		if options.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound {
			b.in++
			b.came[string(udp.Payload)]++
			continue
		}
		b.out++
		b.went[string(udp.Payload)]++
		if len(options.Comments) > 0 && len(options.Comments[0]) > 7 && options.Comments[0][:7] == "dropped" {
			b.refused++
		}
	}
}

// check compares a file with the port's counters.
func (e *end) check(t *testing.T, b books) {
	t.Helper()
	s := e.last
	if b.in != s.Received || b.out != s.Sent+s.SendDropped || b.refused != s.SendDropped {
		t.Errorf("%s: in %d, out %d, of these refused %d; the port %+v", e.path, b.in, b.out, b.refused, s)
	}
	if b.in+b.out != s.Captured || s.CaptureMissed != 0 || e.tap.Stats() != (Stats{Captured: s.Captured}) {
		t.Errorf("%s: %d packets; the port %+v", e.path, b.in+b.out, s)
	}
	if b.dropped != s.ReceiveDropped || b.received != s.Received+s.ReceiveDropped || b.missing > s.ReceiveDropped {
		t.Errorf("%s: %+v; the port %+v", e.path, b, s)
	}
}

// within checks that packets which were received at one end were sent at the other, as often.
func within(t *testing.T, what string, few map[string]int, of string, all map[string]int) {
	t.Helper()
	for packet, n := range few {
		if all[packet] < n {
			t.Errorf("%s %d times, and %s %d times: %x", what, n, of, all[packet], packet)
		}
	}
}

// TestTraffic captures calls at both ends. What the ports counted is in the files, each packet once, and in the right direction; and what
// one end received, the other has sent. A network that is faulty loses the server's packets, which its capture marks.
func TestTraffic(t *testing.T) {
	loopback := sw.EndpointConfig{Address: netip.MustParseAddr("127.0.0.1")}
	inPlace := func(f func() error) error { return f() }
	const calls = 200
	run := func(t *testing.T, server, client *end, onServer, onClient func(func() error) error, faulty bool) {
		call(t, server, client, onServer, onClient, calls)
		s, c := server.audit(t), client.audit(t)
		server.check(t, s)
		client.check(t, c)
		if s.in < calls || c.in < calls || faulty && (s.refused == 0 || s.dropped == 0) {
			t.Errorf("the server has %d packets in, of its own %d lost and %d of others; the client %d", s.in, s.refused, s.dropped, c.in)
		}
		within(t, "came to the server", s.came, "went from the client", c.went)
		within(t, "came to the client", c.came, "went from the server", s.went)
		if lines := tshark(t, server.path, "-Y", "stillwater && !_ws.malformed", "-T", "fields", "-e", "frame.number"); lines != nil && uint64(len(lines)) != s.in+s.out {
			t.Errorf("tshark knows %d packets of %d", len(lines), s.in+s.out)
		}
	}
	for _, faulty := range []bool{false, true} {
		network, name := faults.Config{}, "clean"
		if faulty {
			network, name = faults.Config{Seed: 1, Loss: 0.05}, "faulty"
		}
		t.Run("udp "+name, func(t *testing.T) {
			run(t, newEnd(t, "server", loopback, network), newEnd(t, "client", loopback, faults.Config{}), inPlace, inPlace, faulty)
		})
		if place := newPair(t); place != nil {
			t.Run("xdp "+name, func(t *testing.T) {
				server, client := newEnd(t, "server", place.server, network), newEnd(t, "client", place.client, faults.Config{})
				run(t, server, client, place.onServer, place.onClient, faulty)
			})
		}
	}
}
