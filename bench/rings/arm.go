//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/wire"
)

const (
	port        = 7700
	packetBytes = 64
)

// packet is a datagram to an address, from itself: whoever sends it back need not change it.
func packet(to lab.Place, peer bool) []byte {
	ip := to.Address.Addr()
	if peer {
		ip = to.Peer
	}
	address := wire.Addr{IP: ip.As16(), Port: port}
	frame := make([]byte, packetBytes)
	local := wire.MAC{0x02, 0, 0, 0, 0, 1}
	wire.EncodeUDPv4(frame, &wire.Datagram{SourceMAC: local, DestinationMAC: local, Source: address, Destination: address})
	return frame
}

// armChild is the process that is measured.
type armChild struct {
	place   lab.Place
	ring    ring
	program *bpf.Program
	looked  clock.Time // when take last did
}

// open opens the socket and steers to it what is for our address.
func (a *armChild) open(arm string) error {
	device, err := net.InterfaceByName(a.place.Interface)
	if err != nil {
		return err
	}
	if a.ring, err = openRing(arm, device.Index); err != nil {
		return err
	}
	if a.program, err = bpf.Load(bpf.Options{}); err != nil {
		return err
	}
	if err := errors.Join(
		a.program.SetSocket(0, a.ring.fd()), a.program.RegisterService(a.place.Address.Addr(), port),
	); err != nil {
		return err
	}
	_, err = a.program.Attach(device.Index, bpf.ModeNative)
	return err
}

func (a *armChild) close() error {
	var errs []error
	if a.program != nil {
		errs = append(errs, a.program.Close())
	}
	if a.ring != nil {
		errs = append(errs, a.ring.close())
	}
	return errors.Join(errs...)
}

// span is the time of one measure: load before it, and what is measured.
type span struct {
	Warmup time.Duration `json:"warmup_ns"`
	Window time.Duration `json:"window_ns"`
}

// counted is what came of sending or receiving.
type counted struct {
	PerS  float64 `json:"per_s"`
	Total uint64  `json:"total_count"` // with the warm-up
}

// clockEvery is how many turns pass between two looks at the clock, which costs as much as a few packets do in user space.
const clockEvery = 16

// count runs turn for the length of the span, and on until there was a packet; turn returns the packets that it had.
func (s span) count(turn func() (int, error)) (c counted, err error) {
	var before uint64
	start := clock.Now()
	begin := start.Add(s.Warmup)
	for measuring := false; ; {
		for range clockEvery {
			n, err := turn()
			if err != nil {
				return c, err
			}
			c.Total += uint64(n)
		}
		now := clock.Now()
		switch {
		case !measuring && now.Before(begin):
		case !measuring:
			measuring, before, begin = true, c.Total, now
		case now.Sub(begin) >= s.Window+patience && c.Total == before:
			return c, errors.New("there was no packet")
		case now.Sub(begin) >= s.Window && c.Total > before: // a busy machine may be elsewhere for the whole of the window
			c.PerS = float64(c.Total-before) / now.Sub(begin).Seconds()
			return c, nil
		}
	}
}

// transmitRequest sends in bursts, each with a kick.
type transmitRequest struct {
	Burst int `json:"burst"`
	span
}

func (a *armChild) transmit(r transmitRequest) (any, error) {
	out := packet(a.place, true)
	c, err := r.count(func() (int, error) { return a.ring.send(out, r.Burst) })
	if err != nil {
		return nil, err
	}
	return c, a.drain()
}

// patience is how long is waited for what must come: a packet, or frames from the kernel.
const patience = 5 * time.Second

func (a *armChild) drain() error {
	for deadline := clock.Now().Add(patience); ; {
		n, err := a.ring.outstanding()
		if err != nil || n == 0 {
			return err
		}
		if clock.Now().After(deadline) {
			return fmt.Errorf("the kernel keeps %d frames", n)
		}
	}
}
