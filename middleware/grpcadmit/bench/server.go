//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	"github.com/stillwater-rpc/stillwater/hw/cpu"
	"github.com/stillwater-rpc/stillwater/middleware"
	"github.com/stillwater-rpc/stillwater/middleware/grpcadmit"
)

const (
	service = "stillwater.bench.Work"
	method  = "/" + service + "/Do"
	// inFlightCap is that of the control arm.
	inFlightCap = 8
	// window is of flow control, so large that it is never what is measured.
	window = 1 << 24
)

// serve is the server's process: it says its address on its output, and ends with its input.
func serve(o *options) error {
	pin, err := strconv.Atoi(os.Getenv("BENCH_CPU"))
	if err != nil {
		return errors.New("-serve is for the command itself")
	}
	if err := cpu.PinProcess(pin); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr()
	srv, listener, err := o.server(listener, middleware.Config{}, workload.Spin)
	if err != nil {
		return err
	}
	stop, err := o.startProfile("")
	if err != nil {
		return err
	}
	defer stop()
	fmt.Println(address)
	go srv.Serve(listener)
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// startProfile begins to write one, if it is asked for.
func (o *options) startProfile(name string) (stop func(), err error) {
	if o.profile == "" {
		return func() {}, nil
	}
	file, err := os.Create(o.profile + name)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); file.Close() }, pprof.StartCPUProfile(file)
}

// server makes the arm's server, whose handlers spin.
func (o *options) server(l net.Listener, config middleware.Config, spin func(time.Duration)) (*grpc.Server, net.Listener, error) {
	arm, l, err := o.arm(l, config)
	if err != nil {
		return nil, nil, err
	}
	srv := grpc.NewServer(append(arm, grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window))...)
	handle := func(_ any, ctx context.Context, decode func(any) error, chain grpc.UnaryServerInterceptor) (any, error) {
		request := new(wrapperspb.UInt64Value)
		if err := decode(request); err != nil {
			return nil, err
		}
		work := func(context.Context, any) (any, error) {
			spin(o.work)
			return request, nil
		}
		if chain == nil {
			return work(ctx, request)
		}
		return chain(ctx, request, &grpc.UnaryServerInfo{FullMethod: method}, work)
	}
	srv.RegisterService(&grpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Do", Handler: handle}},
	}, struct{}{})
	return srv, l, nil
}

// arm is what distinguishes it: options, and a listener.
func (o *options) arm(l net.Listener, config middleware.Config) ([]grpc.ServerOption, net.Listener, error) {
	config.SLO, config.Permits = o.slo, o.permits
	switch o.serve {
	case "bare":
		return nil, l, nil
	case "cap":
		return capped(), l, nil
	case "cap-workers":
		return append(capped(), grpc.NumStreamWorkers(grpcadmit.Workers)), l, nil
	case "ours":
		c := middleware.New(config)
		return grpcadmit.Options(c), grpcadmit.Listener(c, l), nil
	case "ours-listener": // without
		return grpcadmit.Options(middleware.New(config)), l, nil
	case "ours-tap": // without
		return grpcadmit.Interceptors(middleware.New(config)), l, nil
	}
	return nil, nil, fmt.Errorf("no arm is called %q: write bare, cap, cap-workers, ours, ours-listener or ours-tap", o.serve)
}

// capped refuses in the tap handle while so many are in flight.
func capped() []grpc.ServerOption {
	var inFlight atomic.Int64
	full := status.Error(codes.ResourceExhausted, "too many requests in flight")
	enter := func(ctx context.Context, _ *tap.Info) (context.Context, error) {
		if inFlight.Add(1) > inFlightCap {
			inFlight.Add(-1)
			return nil, full
		}
		return ctx, nil
	}
	leave := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		defer inFlight.Add(-1)
		return handler(ctx, request)
	}
	return []grpc.ServerOption{grpc.InTapHandle(enter), grpc.ChainUnaryInterceptor(leave)}
}

// child is a server's process.
type child struct {
	address string
	stop    func() error
}

// start starts the server of an arm on a CPU.
func (o *options) start(arm, name string, on int) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments := []string{
		"-serve", arm, "-work", o.work.String(), "-slo", o.slo.String(), "-permits", strconv.Itoa(o.permits),
	}
	if o.profile != "" {
		arguments = append(arguments, "-profile", o.profile+name)
	}
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), "BENCH_CPU="+strconv.Itoa(on))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() error { in.Close(); return command.Wait() }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server of %s said no address: %w", arm, err), stop())
	}
	return &child{strings.TrimSpace(line), stop}, nil
}
