package runtime

import (
	"errors"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// downstreamEvery is how often a server looks at what it was granted downstream: a few round trips of a slow network, and too seldom to cost an idle server anything.
const downstreamEvery = 5 * time.Millisecond

// errDownstreamNil says that there is no such session.
var errDownstreamNil = errors.New("downstream session is nil: leave it out of ServerConfig.Downstream")

// press has the server's pool follow what its sessions downstream were granted, until done is closed. A session that was closed counts no more.
func (s *Server) press(done <-chan struct{}) {
	var bound admit.Downstream
	ticker := time.NewTicker(downstreamEvery)
	defer ticker.Stop()
	last := uint64(0)
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		granted, waiting := s.downstream()
		if waiting == 0 && last == 0 {
			bound.Update(granted, 0, 0) // it forgets a burst
			continue
		}
		pool, stopped := s.pool()
		if stopped != nil {
			return
		}
		ceiling := bound.Update(granted, waiting, pool)
		if ceiling != last && s.ceil(ceiling) != nil {
			return
		}
		last = ceiling
	}
}

// downstream sums up what the sessions downstream have.
func (s *Server) downstream() (granted, waiting uint64) {
	for _, session := range s.cfg.Downstream {
		c, err := session.Credit()
		if err != nil || c.Lapsed {
			continue
		}
		granted += max(c.Limit, c.Next) - c.Next + uint64(c.Outstanding)
		waiting += uint64(c.Waiting)
	}
	return granted, waiting
}

// pool is the credit pool of all dispatchers.
func (s *Server) pool() (all uint64, err error) {
	err = s.ep.each(func(c *core, _ clock.Time) { all += c.d.Pool() })
	return all, err
}

// ceil gives each dispatcher its part of the ceiling; 0 = none.
func (s *Server) ceil(ceiling uint64) error {
	i := 0
	return s.ep.each(func(c *core, _ clock.Time) {
		part := uint64(0)
		if ceiling > 0 {
			part = uint64(share(int(ceiling), i, len(s.ep.cores)))
		}
		c.d.Ceiling(part)
		i++
	})
}
