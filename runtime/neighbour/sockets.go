//go:build linux

package neighbour

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// sockets are one of each family, which send through one interface only.
type sockets struct {
	four int
	six  int // -1 where the kernel has no IPv6
}

// openAsking opens sockets whose datagrams go no further than the next hop.
func openAsking(ifindex int) (sockets, error) {
	return openBoth(func(family int) (int, error) {
		level, hops := unix.IPPROTO_IP, unix.IP_TTL
		if family == unix.AF_INET6 {
			level, hops = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS
		}
		return openSocket(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP, ifindex, option{level, hops, 1})
	})
}

// openSending opens sockets that are given packets with their IP headers (raw(7)). They need CAP_NET_RAW, as AF_XDP does.
func openSending(ifindex int) (sockets, error) {
	return openBoth(func(family int) (int, error) {
		return openSocket(family, unix.SOCK_RAW, unix.IPPROTO_RAW, ifindex)
	})
}

// openBoth opens one of each family.
func openBoth(open func(family int) (int, error)) (s sockets, err error) {
	if s.four, err = open(unix.AF_INET); err != nil {
		return s, err
	}
	s.six, err = open(unix.AF_INET6)
	switch {
	case errors.Is(err, unix.EAFNOSUPPORT):
	case err != nil:
		return s, errors.Join(err, unix.Close(s.four))
	}
	return s, nil
}

// option is one of setsockopt(2).
type option struct{ level, name, value int }

// openSocket opens one. It returns -1 with an error.
func openSocket(family, kind, protocol, ifindex int, more ...option) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return -1, err
	}
	for _, o := range append(more,
		option{unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, ifindex},
		option{unix.SOL_SOCKET, unix.SO_RCVBUF, 0}, // the smallest: nothing is ever read
	) {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("option %d of level %d: %w", o.name, o.level, err)
		}
	}
	return fd, nil
}

func (s *sockets) close() error {
	err := unix.Close(s.four)
	if s.six >= 0 {
		err = errors.Join(err, unix.Close(s.six))
	}
	return err
}
