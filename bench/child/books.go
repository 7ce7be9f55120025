package child

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Credits is the sum of what the client's sessions know of their credits.
type Credits struct {
	Sessions    int    `json:"session_count"`
	Unused      uint64 `json:"unused_count"` // the sum of limit - next, where the limit is the larger
	Waiting     int    `json:"waiting_count"`
	Outstanding int    `json:"outstanding_count"`
}

func (c *clientChild) credits() (total Credits, err error) {
	if c.issuer == nil {
		return total, errNotDialed
	}
	for _, s := range c.issuer.Sessions() {
		credit, err := s.Credit()
		if err != nil {
			return total, err
		}
		total.Sessions++
		if credit.Limit > credit.Next {
			total.Unused += credit.Limit - credit.Next
		}
		total.Waiting += credit.Waiting
		total.Outstanding += credit.Outstanding
	}
	return total, nil
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
