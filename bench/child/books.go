package child

import (
	"fmt"

	"github.com/vishvananda/netlink"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// credits reads what the server has in its books for each session.
func (s *serverChild) credits() ([]sw.Credit, error) {
	if s.srv == nil {
		return nil, errNotServing
	}
	return s.srv.Credits()
}

// credits reads what each session has in its own.
func (c *clientChild) credits() (all []sw.Credit, err error) {
	if c.issuer == nil {
		return nil, errNotDialed
	}
	for _, s := range c.issuer.Sessions() {
		credit, err := s.Credit()
		if err != nil {
			return nil, err
		}
		all = append(all, credit)
	}
	return all, nil
}

// attached asks the kernel, not our own packages: they are what is under test.
func (c *child) attached() (bool, error) {
	link, err := netlink.LinkByName(c.place.Interface)
	if err != nil {
		return false, fmt.Errorf("looking for a program on %s: %w", c.place.Interface, err)
	}
	xdp := link.Attrs().Xdp
	return xdp != nil && xdp.Attached, nil
}
