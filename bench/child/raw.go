package child

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/rawudp"
)

// RawRequest runs a closed loop of bare UDP datagrams.
type RawRequest struct {
	Address      string        `json:"address"`
	Outstanding  int           `json:"outstanding"`
	PayloadBytes int           `json:"payload_bytes"`
	Warmup       time.Duration `json:"warmup_ns"`
	Duration     time.Duration `json:"duration_ns"`
}

// RawResult is what it measured.
type RawResult struct {
	PerSecond float64 `json:"per_second"`
	Lost      int64   `json:"lost_count"`
	NsP50     int64   `json:"latency_ns_p50"`
	NsP99     int64   `json:"latency_ns_p99"`
}

// rawEcho is a bare echo server that runs.
type rawEcho struct {
	server *rawudp.Server
	stop   atomic.Bool
	done   chan error
}

// serveRaw starts the bare echo in place of whatever serves: two loops that spin on one CPU would each have half of it.
func (s *serverChild) serveRaw() (address string, err error) {
	if err := s.close(); err != nil {
		return "", err
	}
	server, err := rawudp.NewServer(netip.AddrPortFrom(s.place.Address.Addr(), 0))
	if err != nil {
		return "", err
	}
	s.raw = &rawEcho{server: server, done: make(chan error, 1)}
	go func(r *rawEcho) { r.done <- r.server.Run(&r.stop) }(s.raw)
	return server.Addr().String(), nil
}

func (s *serverChild) closeRaw() error {
	if s.raw == nil {
		return nil
	}
	s.raw.stop.Store(true)
	err := errors.Join(<-s.raw.done, s.raw.server.Close())
	s.raw = nil
	return err
}

func (c *clientChild) raw(r RawRequest) (any, error) {
	if err := c.close(); err != nil {
		return nil, err
	}
	to, err := netip.ParseAddrPort(r.Address)
	if err != nil {
		return nil, err
	}
	client, err := rawudp.Dial(to)
	if err != nil {
		return nil, err
	}
	result, err := client.Run(rawudp.RunConfig{
		Outstanding: r.Outstanding, PayloadBytes: r.PayloadBytes, Warmup: r.Warmup, Duration: r.Duration,
	})
	if err = errors.Join(err, client.Close()); err != nil {
		return nil, err
	}
	return RawResult{
		PerSecond: result.PerSecond(), Lost: result.Lost,
		NsP50: result.RoundTrips.ValueAtQuantile(50), NsP99: result.RoundTrips.ValueAtQuantile(99),
	}, nil
}
