package runtime

import "github.com/stillwater-rpc/stillwater/dispatcher"

// xdpPort is a port over AF_XDP, which follows its interface. Package xdpport has it; openXDP is the seam to where it cannot be built.
type xdpPort interface {
	dispatcher.Port
	Mode() string
	Trouble() string
	Keep(own func(func()) bool, stop <-chan struct{})
	Resize(count int) error
}
