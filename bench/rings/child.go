//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/hw/cpu"
)

// The hidden arguments that make a process a child.
const (
	argArm  = "ring-arm"
	argPeer = "ring-peer"
)

// children is for the first line of main, and of TestMain: where the arguments ask for a child, it is that child and does not return.
func children() {
	if len(os.Args) < 2 || os.Args[1] != argArm && os.Args[1] != argPeer {
		return
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	pinned := flags.Int("cpu", -1, "run on this CPU alone; negative = anywhere")
	arm := flags.String("arm", "", "whose rings")
	_ = flags.Parse(os.Args[2:]) // ExitOnError
	run := func() error { return serveArm(*arm) }
	if os.Args[1] == argPeer {
		run = servePeer
	}
	var err error
	if *pinned >= 0 {
		err = cpu.PinProcess(*pinned)
	}
	if err = errors.Join(err, run()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve obeys the parent, over standard input and output.
func serve(handlers map[string]func(json.RawMessage) (any, error)) error {
	in, err := lab.Stdin()
	if err != nil {
		return err
	}
	return lab.ServeChild(in, os.Stdout, handlers)
}

// takes makes a handler of the control protocol out of a typed function.
func takes[T any](f func(T) (any, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var request T
		if err := json.Unmarshal(raw, &request); err != nil {
			return nil, err
		}
		return f(request)
	}
}

func serveArm(arm string) error {
	a := &armChild{}
	err := serve(map[string]func(json.RawMessage) (any, error){
		lab.MethodGo: takes(func(at lab.Place) (any, error) { a.place = at; return nil, a.open(arm) }),
		"transmit":   takes(a.transmit),
		"receive":    takes(a.receive),
		"echo":       takes(a.echo),
		"collect":    takes(a.collect),
	})
	return errors.Join(err, a.close())
}

func servePeer() error {
	p := &peerChild{}
	err := serve(map[string]func(json.RawMessage) (any, error){
		lab.MethodGo: takes(func(at lab.Place) (_ any, err error) {
			p.place = at
			p.device, err = net.InterfaceByName(at.Interface)
			return nil, err
		}),
		"drop":  takes(func(struct{}) (any, error) { return nil, p.drop() }),
		"count": takes(func(struct{}) (any, error) { return p.count() }),
		"echo":  takes(func(struct{}) (any, error) { return nil, p.echo() }),
		"flood": takes(func(struct{}) (any, error) { return nil, p.flood() }),
		"quiet": takes(func(struct{}) (any, error) { return nil, p.quiet() }),
	})
	return errors.Join(err, p.close())
}
