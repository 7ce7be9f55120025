package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/load"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Config says which programs to start, and where.
type Config struct {
	// Executable run with ServerArgs must call [Server], and with ClientArgs [Client]; both get --cpu=N besides.
	Executable             string
	ServerArgs, ClientArgs []string
	Stderr                 io.Writer
	Loopback               bool // kernel UDP on loopback instead of namespaces
	IPv6                   bool
	// Shared has both processes take the CPUs as they come, with Go's own settings: for loads that need no CPU of their own.
	Shared bool
	// ServerUser is whom the server's process runs as, with its files; nil = as this process. See [lab.Node].
	ServerUser  *lab.User
	ServerFiles []*os.File
	Prepare     func(*lab.Pair) error // see [lab.Config]
}

// Pair is a server and a client in a lab of their own: fresh namespaces, fresh processes.
type Pair struct {
	Lab *lab.Lab
}

// grace is how long a child may take to end by itself: a machine that has more to do is no reason to kill it.
const grace = 20 * time.Second

// Start starts both processes. One P each, and more room for the collector: what polling on two CPUs asks for.
func Start(ctx context.Context, cfg Config) (*Pair, error) {
	env := []string{"GOMAXPROCS=1", "GOGC=400"}
	serverCPU, clientCPU := "--cpu=-1", "--cpu=-1"
	switch {
	case cfg.Shared:
		env = nil
	case runtime.NumCPU() >= 2:
		serverCPU, clientCPU = "--cpu=1", "--cpu=0"
	}
	l, err := lab.Start(ctx, lab.Config{
		Server:   lab.Node{Path: cfg.Executable, Args: with(cfg.ServerArgs, serverCPU), Env: env, Stderr: cfg.Stderr, User: cfg.ServerUser, Files: cfg.ServerFiles},
		Client:   lab.Node{Path: cfg.Executable, Args: with(cfg.ClientArgs, clientCPU), Env: env, Stderr: cfg.Stderr},
		Loopback: cfg.Loopback, IPv6: cfg.IPv6, Grace: grace, Prepare: cfg.Prepare,
	})
	if err != nil {
		return nil, err
	}
	return &Pair{Lab: l}, nil
}

func with(args []string, more string) []string { return append(append([]string(nil), args...), more) }

// Close ends both processes and removes the lab.
func (p *Pair) Close() error { return p.Lab.Close() }

// Serve starts the server, in place of the one that runs.
func (p *Pair) Serve(ctx context.Context, r ServeRequest) (o Opened, err error) {
	if err = p.Lab.Server.Call(ctx, "serve", r, &o); err != nil {
		err = fmt.Errorf("starting the server: %w", err)
	}
	return o, err
}

// Dial opens the client's sessions, in place of those that it has.
func (p *Pair) Dial(ctx context.Context, r DialRequest) (o Opened, err error) {
	if err = p.Lab.Client.Call(ctx, "dial", r, &o); err != nil {
		err = fmt.Errorf("starting the client: %w", err)
	}
	return o, err
}

// ServeAndDial does both.
func (p *Pair) ServeAndDial(ctx context.Context, s ServeRequest, sessions int) (server Opened, err error) {
	if server, err = p.Serve(ctx, s); err != nil {
		return server, err
	}
	_, err = p.Dial(ctx, DialRequest{
		Address: server.Address, Sessions: sessions, Scheme: s.Scheme, Tuning: s.Tuning, Transport: s.Transport,
	})
	return server, err
}

// Open runs an open loop.
func (p *Pair) Open(ctx context.Context, method string, loop load.OpenLoop) (r load.Result, err error) {
	err = p.Lab.Client.Call(ctx, "open", OpenRequest{Method: method, Loop: loop}, &r)
	return r, err
}

// Callers has callers make their calls.
func (p *Pair) Callers(ctx context.Context, plan callers.Plan) (r callers.Result, err error) {
	err = p.Lab.Client.Call(ctx, "callers", plan, &r)
	return r, err
}

// Closed runs a closed loop.
func (p *Pair) Closed(ctx context.Context, method string, loop load.ClosedLoop) (r load.Result, err error) {
	err = p.Lab.Client.Call(ctx, "closed", ClosedRequest{Method: method, Loop: loop}, &r)
	return r, err
}

// ServerStats and ClientStats read the endpoints' counters.
func (p *Pair) ServerStats(ctx context.Context) (s sw.Stats, err error) {
	err = p.Lab.Server.Call(ctx, "stats", nil, &s)
	return s, err
}

// ClientStats reads the client's counters.
func (p *Pair) ClientStats(ctx context.Context) (s sw.Stats, err error) {
	err = p.Lab.Client.Call(ctx, "stats", nil, &s)
	return s, err
}

// Audit checks the books of both.
func (p *Pair) Audit(ctx context.Context) error {
	return errors.Join(p.Lab.Server.Call(ctx, "audit", nil, nil), p.Lab.Client.Call(ctx, "audit", nil, nil))
}

// Stop closes the server and the sessions and leaves the processes running.
func (p *Pair) Stop(ctx context.Context) error {
	return errors.Join(p.Lab.Client.Call(ctx, "close", nil, nil), p.Lab.Server.Call(ctx, "close", nil, nil))
}

// Credits reads what server and client have in their books about each session's credits.
func (p *Pair) Credits(ctx context.Context) (server, client []sw.Credit, err error) {
	err = errors.Join(p.Lab.Server.Call(ctx, "credits", nil, &server), p.Lab.Client.Call(ctx, "credits", nil, &client))
	return server, client, err
}

// Heal ends the faults of the network, for the server and the sessions that there are.
func (p *Pair) Heal(ctx context.Context) error {
	return errors.Join(p.Lab.Server.Call(ctx, "heal", nil, nil), p.Lab.Client.Call(ctx, "heal", nil, nil))
}

// Round has each session make one call, one after the other, and fails if one of them is not answered.
func (p *Pair) Round(ctx context.Context) error { return p.Lab.Client.Call(ctx, "round", nil, nil) }

// Attached asks the kernel whether an XDP program runs on the server's interface.
func (p *Pair) Attached(ctx context.Context) (attached bool, err error) {
	err = p.Lab.Server.Call(ctx, "attached", nil, &attached)
	return attached, err
}

// ServeRaw starts a bare spinning echo over UDP sockets in place of the server.
func (p *Pair) ServeRaw(ctx context.Context) (address string, err error) {
	if err = p.Lab.Server.Call(ctx, "raw", nil, &address); err != nil {
		err = fmt.Errorf("starting the raw echo: %w", err)
	}
	return address, err
}

// Raw runs a bare closed loop against that, in place of the sessions.
func (p *Pair) Raw(ctx context.Context, r RawRequest) (result RawResult, err error) {
	err = p.Lab.Client.Call(ctx, "raw", r, &result)
	return result, err
}

// HeapObjects is how many heap objects each process has allocated so far.
func (p *Pair) HeapObjects(ctx context.Context) (server, client uint64, err error) {
	err = errors.Join(
		p.Lab.Server.Call(ctx, "allocs", nil, &server),
		p.Lab.Client.Call(ctx, "allocs", nil, &client),
	)
	return server, client, err
}
