//go:build !linux || portable

package udpport

import (
	"errors"
	"fmt"
)

// OpenGroup is Open for one dispatcher. Other kernels than Linux cannot be told which of several sockets a packet is for.
func OpenGroup(cfg Config, count int) ([]*Port, error) {
	if count != 1 {
		return nil, fmt.Errorf("udpport: %d dispatchers at one address: %w but by Linux: use one", count, errors.ErrUnsupported)
	}
	p, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	return []*Port{p}, nil
}
