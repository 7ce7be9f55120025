//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// The processes by their place in the chain.
const (
	atUser = iota
	atFront
	atMiddle
	atLeaf
)

var roles = [...]string{atUser: "user", atFront: "front", atMiddle: "middle", atLeaf: "leaf"}

// The hidden arguments that make a process a child.
const (
	argUser  = "user"
	argLayer = "layer"
)

// children is for the first line of main, and of TestMain: where the arguments ask for a child, it is that child and does not return.
func children() {
	run := map[string]func() error{argUser: runUser, argLayer: runLayer}
	if len(os.Args) < 2 || run[os.Args[1]] == nil {
		return
	}
	if err := run[os.Args[1]](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// graph is the four processes, and the parent's typed view of them.
type graph struct {
	*lab.Chain
}

// grace is how long a child may take to end by itself: a machine that has more to do is no reason to kill it.
const grace = 20 * time.Second

// start starts all of them, the leaf first, and has each caller known to its server. The habits are those of user, front and middle.
func start(ctx context.Context, r *prove.Run, habits [atLeaf]habits) (g *graph, err error) {
	var nodes []lab.ChainNode
	for at, role := range roles {
		arg := argLayer
		if at == atUser {
			arg = argUser
		}
		nodes = append(nodes, lab.ChainNode{Role: role, Node: lab.Node{
			Path: "/proc/self/exe", Args: []string{arg}, Env: []string{"GORACE=atexit_sleep_ms=0"}, Stderr: r.Err,
		}})
	}
	g = &graph{}
	if g.Chain, err = lab.StartChain(ctx, grace, nodes...); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	address, err := g.serveLeaf(ctx)
	if err != nil {
		return nil, err
	}
	for _, at := range []int{atMiddle, atFront} {
		if err = g.call(ctx, at, "serve", serveRequest{Below: address, Habits: habits[at]}, &address); err != nil {
			return nil, err
		}
	}
	return g, g.call(ctx, atUser, "dial", dialRequest{Front: address, Habits: habits[atUser]}, nil)
}

func (g *graph) call(ctx context.Context, at int, method string, request, reply any) error {
	return g.Processes[at].Call(ctx, method, request, reply)
}

func (g *graph) serveLeaf(ctx context.Context) (address string, err error) {
	return address, g.call(ctx, atLeaf, "serve", serveRequest{}, &address)
}

// killLeaf returns when it is dead.
func (g *graph) killLeaf(ctx context.Context) error {
	return errors.Join(g.Processes[atLeaf].Kill(syscall.SIGKILL), g.Processes[atLeaf].Wait(ctx))
}

// restartLeaf returns when it serves.
func (g *graph) restartLeaf(ctx context.Context) error {
	if err := g.Processes[atLeaf].Restart(ctx); err != nil {
		return err
	}
	_, err := g.serveLeaf(ctx)
	return err
}

// traffic is what middle has sent to the leaf so far.
func (g *graph) traffic(ctx context.Context) (t traffic, err error) {
	return t, g.call(ctx, atMiddle, "traffic", nil, &t)
}

// stats are those of a caller's port.
func (g *graph) stats(ctx context.Context, at int) (s sw.Stats, err error) {
	return s, g.call(ctx, at, "stats", nil, &s)
}

func (g *graph) seen(ctx context.Context, at int) (s seen, err error) {
	return s, g.call(ctx, at, "seen", nil, &s)
}

// load is the user's.
func (g *graph) load(ctx context.Context, r loadRequest) (all []ended, err error) {
	return all, g.call(ctx, atUser, "load", r, &all)
}

// cancelAll cancels the calls that the user holds.
func (g *graph) cancelAll(ctx context.Context, n int) (at clock.Time, err error) {
	return at, g.call(ctx, atUser, "cancel", n, &at)
}

// portless is how many UDP packets the kernel of the leaf's namespace had no socket for. Over AF_XDP, and with the ordinary socket that a server has beside it, there are none.
func (g *graph) portless() (n uint64, err error) {
	err = g.In(atLeaf, func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err == nil {
			n, err = snmp(text, "Udp:", "NoPorts")
		}
		return err
	})
	return n, err
}

// snmp reads one counter of /proc/net/snmp: a line of names, and one of figures, for each protocol.
func snmp(text []byte, protocol, name string) (uint64, error) {
	var names [][]byte
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || string(fields[0]) != protocol {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if string(n) == name && i < len(fields) {
				return strconv.ParseUint(string(fields[i]), 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("no %s %s in /proc/net/snmp", protocol, name)
}
