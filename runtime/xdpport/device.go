//go:build linux

package xdpport

import "github.com/stillwater-rpc/stillwater/bpf"

// device is the interface that a port is on.
type device struct {
	name  string
	index int
	xdp   bpf.Mode // how the program is attached
	have  int      // receive queues
}
