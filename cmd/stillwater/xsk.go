//go:build linux && !portable

package main

import (
	"errors"

	"github.com/stillwater-rpc/stillwater/runtime/xdpport"
	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/asavie"
)

// implementation says whose AF_XDP sockets an endpoint uses.
type implementation struct{ sockets **xdpport.Sockets }

// The implementations by their names on the command line.
const (
	implementationOwn    = "own"
	implementationAsavie = "asavie"
)

// asavieSockets are those of github.com/asavie/xdp.
var asavieSockets = &xdpport.Sockets{Name: "asavie/xdp", Open: func(cfg xsk.Config) (xdpport.Socket, error) {
	q, err := asavie.Open(cfg)
	if err != nil {
		return nil, err // and not q, which would be a Socket that is not nil
	}
	return q, nil
}}

// String is what Set reads.
func (i implementation) String() string {
	if i.sockets != nil && *i.sockets != nil {
		return implementationAsavie
	}
	return implementationOwn
}

// Type names the value in help.
func (i implementation) Type() string { return "implementation" }

// Set takes a name.
func (i implementation) Set(text string) error {
	switch text {
	case implementationOwn:
		*i.sockets = nil
	case implementationAsavie:
		*i.sockets = asavieSockets
	default:
		return errors.New("it must be own or asavie")
	}
	return nil
}
