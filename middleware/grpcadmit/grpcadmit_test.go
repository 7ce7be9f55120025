package grpcadmit

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/middleware"
)

// way is how a control stands before a server.
type way struct {
	name      string
	options   func(*middleware.Control) []grpc.ServerOption
	listening bool
}

var ways = []way{{"interceptors", Interceptors, false}, {"tap", Options, false}, {"listener", Options, true}}

// stand is a server and a client of it.
type stand struct {
	*middleware.Control
	client *grpc.ClientConn
	server *grpc.Server
	handle func(context.Context, []byte) error
}

const unary, stream = "/test.Echo/Do", "/test.Echo/Many"

func newStand(t *testing.T, w way, config middleware.Config) *stand {
	config.Delay = func(clock.Time) time.Duration { return 0 } // how loaded this machine is is not the question
	config.Log = slog.New(slog.DiscardHandler)
	s := &stand{Control: middleware.New(config)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if w.listening {
		l = Listener(s.Control, l)
	}
	s.server = grpc.NewServer(w.options(s.Control)...)
	s.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Do", Handler: s.do}},
		Streams: []grpc.StreamDesc{{StreamName: "Many", Handler: s.many, ServerStreams: true, ClientStreams: true}},
	}, struct{}{})
	go s.server.Serve(l)
	if s.client, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.client.Close()
		s.server.GracefulStop()
		for s.Stats().Running+s.Stats().Waiting > 0 { // a pass that is given back by the end of its context is so in a goroutine
			time.Sleep(ms)
		}
		if err := s.Audit(); err != nil {
			t.Error(err)
		}
	})
	return s
}

const ms = time.Millisecond

func (s *stand) do(_ any, ctx context.Context, decode func(any) error, chain grpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.BytesValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	return chain(ctx, request, &grpc.UnaryServerInfo{FullMethod: unary}, func(ctx context.Context, _ any) (any, error) {
		if s.handle != nil {
			if err := s.handle(ctx, request.Value); err != nil {
				return nil, err
			}
		}
		return request, nil
	})
}

func (s *stand) many(_ any, stream grpc.ServerStream) error {
	for {
		message := new(wrapperspb.BytesValue)
		if err := stream.RecvMsg(message); err != nil {
			return nil
		}
		if err := stream.SendMsg(message); err != nil {
			return err
		}
	}
}

func (s *stand) call(ctx context.Context, size int, trailer *metadata.MD) error {
	reply := new(wrapperspb.BytesValue)
	if trailer == nil {
		trailer = new(metadata.MD)
	}
	err := s.client.Invoke(ctx, unary, wrapperspb.Bytes(make([]byte, size)), reply, grpc.Trailer(trailer))
	if err == nil && len(reply.Value) != size {
		return status.Errorf(codes.DataLoss, "%d bytes for %d", len(reply.Value), size)
	}
	return err
}

func each(t *testing.T, test func(*testing.T, way)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { test(t, w) })
	}
}

// TestRefusals: what is refused says so with the right code, and the connection serves on.
func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		s := newStand(t, w, middleware.Config{})
		for range 3 { // the header block is the same from the second on
			if err := s.call(t.Context(), 10, nil); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			s.Shed(1)
			trailer := metadata.MD{}
			err := s.call(t.Context(), 20_000, &trailer)
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "refused: shed") {
				t.Errorf("shed: %v", err)
			}
			if p := trailer[pushbackKey]; w.name != "tap" && (len(p) != 1 || p[0] != "-1") {
				t.Errorf("pushback %q", p)
			}
			s.Shed(0)
			s.Drain(true)
			if err := s.call(t.Context(), 10, nil); status.Code(err) != codes.Unavailable {
				t.Errorf("draining: %v", err)
			}
			s.Drain(false)
			if err := s.call(t.Context(), 20_000, nil); err != nil {
				t.Errorf("after that: %v", err)
			}
		}
	})
}

// TestMetadata: what a call says is read, whether its header block is new, known, or changes.
func TestMetadata(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		s := newStand(t, w, middleware.Config{})
		retry := metadata.AppendToOutgoingContext(t.Context(), attemptsKey, "1")
		s.RetriesOff(true)
		for i := range 20 {
			ctx := t.Context()
			if i%5 == 0 {
				ctx = metadata.AppendToOutgoingContext(ctx, "x-request", strings.Repeat("x", i)) // changes the table
			}
			if err := s.call(ctx, 1, nil); err != nil {
				t.Errorf("a first attempt: %v", err)
			}
			if err := s.call(retry, 1, nil); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("a second attempt: %v", err)
			}
		}
		if n := s.Stats().Door; n.Arrivals != 40 || n.Repeated != 20 {
			t.Errorf("%+v", n)
		}
	})
}

func TestArrival(t *testing.T) {
	c := middleware.New(middleware.Config{Routes: map[string]middleware.Route{"/a.B/": {}}})
	defer c.Close()
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	a := arrival(ctx, c, "/a.B/C", metadata.Pairs(criticalityKey, "critical-plus", attemptsKey, "3"))
	if a.Lane != c.Lane("/a.B/C") || a.Level != admit.CriticalPlus || a.Attempt != 3 || !a.Deadline.Equal(deadline) {
		t.Errorf("%+v", a)
	}
	if a := arrival(t.Context(), c, healthPrefix+"Check", metadata.Pairs(attemptsKey, "-1")); a.Lane != middleware.Exempt || a.Attempt != 0 || !a.Deadline.IsZero() {
		t.Errorf("%+v", a)
	}
}

func TestRateSaysWhen(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		s := newStand(t, w, middleware.Config{
			Now:    func() clock.Time { return clock.Time(time.Hour) },
			Routes: map[string]middleware.Route{"/test.Echo/": {Rate: 1, Burst: 2}},
		})
		var last error
		for range 4 {
			last = s.call(t.Context(), 1, nil)
		}
		if status.Code(last) != codes.Unavailable || s.Stats().Door.Refused[admit.ReasonMethodRate] != 2 {
			t.Errorf("%v, %+v", last, s.Stats().Door)
		}
	})
}

// TestStreams: a stream that lasts gives its permit back, and keeps it if its route has a bound.
func TestStreams(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		for _, bound := range []int{0, 1} {
			s := newStand(t, w, middleware.Config{Permits: 1, Routes: map[string]middleware.Route{stream: {InService: bound}}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			many, err := s.client.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, stream)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := many.SendMsg(wrapperspb.Bytes([]byte("x"))); err != nil {
					t.Fatal(err)
				}
				if err := many.RecvMsg(new(wrapperspb.BytesValue)); err != nil {
					t.Fatal(err)
				}
				if err := s.call(t.Context(), 1, nil); err != nil {
					t.Fatal(err)
				}
			}
			if n := s.Stats().Running; n != bound {
				t.Errorf("%d run beside a stream with bound %d", n, bound)
			}
			cancel()
		}
	})
}

// TestUnreadGivesBack: streams that end between the tap handle and the interceptor.
func TestUnreadGivesBack(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		s := newStand(t, w, middleware.Config{Permits: 1})
		for range 3 {
			if err := s.client.Invoke(t.Context(), "/test.Echo/Unknown", wrapperspb.Bytes(nil), new(wrapperspb.BytesValue)); status.Code(err) != codes.Unimplemented {
				t.Error(err)
			}
			if err := s.call(t.Context(), 5<<20, nil); status.Code(err) != codes.ResourceExhausted || strings.Contains(err.Error(), "refused") { // larger than gRPC takes
				t.Error(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := s.client.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, unary); err != nil { // no payload comes
				t.Error(err)
			}
			cancel()
		}
		for s.call(t.Context(), 1, nil) != nil { // until what gives back has run: it could not else, with one permit
			time.Sleep(ms)
		}
	})
}

// TestPanicGivesBack calls the interceptor itself: gRPC lets a panic end the process.
func TestPanicGivesBack(t *testing.T) {
	c := middleware.New(middleware.Config{Permits: 1})
	defer c.Close()
	for range 3 {
		func() {
			defer func() { recover() }()
			Unary(c)(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: unary}, func(context.Context, any) (any, error) { panic("x") })
		}()
	}
	if s := c.Stats(); s.Running != 0 || s.Gate.Done != 3 {
		t.Errorf("%+v", s)
	}
}

// TestStorm has calls that end in every way, on several connections' worth of streams; the stand's end looks at the books.
func TestStorm(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		s := newStand(t, w, middleware.Config{Permits: 2, Waiting: 8})
		s.handle = func(ctx context.Context, payload []byte) error {
			if len(payload)%3 == 0 {
				return status.Error(codes.NotFound, "x")
			}
			return nil
		}
		var all sync.WaitGroup
		var answers, other sync.Map
		for i := range 8 {
			all.Go(func() {
				for j := range 100 {
					ctx, cancel := context.WithCancel(t.Context())
					if j%4 == 0 {
						ctx, cancel = context.WithTimeout(t.Context(), time.Duration(1+j*i)*10*time.Microsecond)
					}
					if j%5 == 0 {
						go cancel()
					}
					code := status.Code(s.call(ctx, (i+j)%7*3000, nil))
					switch code {
					case codes.OK, codes.NotFound, codes.ResourceExhausted, codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
						answers.Store(code, true)
					default:
						other.Store(code, true)
					}
					cancel()
				}
			})
		}
		all.Go(func() {
			for j := range 50 {
				s.Shed(float64(j%10) / 10)
				s.Drain(j%7 == 0)
				time.Sleep(ms / 4)
			}
			s.Shed(0)
			s.Drain(false)
		})
		all.Wait()
		other.Range(func(code, _ any) bool { t.Errorf("code %v", code); return true })
		if err := s.call(t.Context(), 100, nil); err != nil { // 100 is no multiple of 3
			t.Errorf("after the storm: %v", err)
		}
	})
}
