package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"slices"
	"sync"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/dispatcher/handover"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/hw/cpu"
	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/wire/session"
)

// DispatchersMax is the largest number of dispatchers of an endpoint: what a connection id has room for.
const DispatchersMax = session.OwnersMax

// core is one of an endpoint's dispatchers, with its loop and its port.
type core struct {
	d    *dispatcher.Dispatcher
	loop *dispatcher.Loop
	port dispatcher.Port // with middleware
	bare dispatcher.Port // without
	shut bool            // no session may be opened any more; only the loop looks at it
}

// do runs f as the dispatcher's owner and waits for it.
func (c *core) do(f func(d *dispatcher.Dispatcher, now clock.Time)) error {
	if err := c.loop.Do(f); err != nil {
		return ErrClosed
	}
	return nil
}

// settleDispatchers puts the default in.
func (c *EndpointConfig) settleDispatchers() error {
	c.Dispatchers = cmp.Or(c.Dispatchers, 1)
	if c.Dispatchers < 1 || c.Dispatchers > DispatchersMax {
		return fmt.Errorf("%d dispatchers: must be 1 to %d", c.Dispatchers, DispatchersMax)
	}
	return nil
}

// share is the i-th of n parts of a whole, which has at least one for each.
func share(whole, i, n int) int { return max((whole+n-1-i)/n, 1) }

// build makes the dispatchers over their ports. On error the ports are closed.
func (e *Endpoint) build(ports []dispatcher.Port, config dispatcher.Config) error {
	e.bare = ports[0]
	var group *handover.Group
	if len(ports) > 1 {
		group = handover.Join(ports)
	}
	var errs []error
	for i, port := range ports {
		c := &core{port: port, bare: port}
		if group != nil {
			c.port, c.bare = group.Port(i), group.Port(i)
		}
		if e.cfg.WrapPort != nil {
			c.port = e.cfg.WrapPort(c.port)
		}
		config.Owner = uint8(i)
		c.d = dispatcher.New(config, c.port)
		loop, err := e.loopConfig(i)
		if err == nil {
			c.loop, err = dispatcher.NewLoop(loop, c.d, c.port)
		}
		if err != nil {
			errs = append(errs, err, c.port.Close())
			continue
		}
		if group != nil {
			group.Serve(i, c.loop.Rouse, c.d.Waited)
		}
		e.cores = append(e.cores, c)
	}
	if len(errs) > 0 {
		return errors.Join(append(errs, e.stop())...)
	}
	e.replyMax = e.cores[0].d.ReplyMax()
	return nil
}

// stop stops the loops, which closes the ports.
func (e *Endpoint) stop() error {
	errs := make([]error, len(e.cores))
	var group sync.WaitGroup
	for i, c := range e.cores {
		group.Go(func() { errs[i] = c.loop.Stop(closePatience) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// each runs f as the owner of one dispatcher after the other.
func (e *Endpoint) each(f func(c *core, now clock.Time)) error {
	e.start()
	for _, c := range e.cores {
		if err := c.do(func(_ *dispatcher.Dispatcher, now clock.Time) { f(c, now) }); err != nil {
			return err
		}
	}
	return nil
}

// own runs f as the owner of all dispatchers at once, and waits for it; false when one of them has stopped, and f did not run. Whoever wants all batons takes
// them in the same order, so no two wait for each other.
func (e *Endpoint) own(f func()) bool { return asOwner(e.cores, f) }

func asOwner(cores []*core, f func()) (ran bool) {
	if len(cores) == 0 {
		f()
		return true
	}
	err := cores[0].do(func(*dispatcher.Dispatcher, clock.Time) { ran = asOwner(cores[1:], f) })
	return ran && err == nil
}

// dialer is the dispatcher for one more connection to a server.
func (e *Endpoint) dialer(to *wire.Addr) *core {
	if len(e.cores) == 1 {
		return e.cores[0]
	}
	n := e.dialed.Add(1) - 1
	return e.cores[session.Dialer(to, int(n%DispatchersMax), len(e.cores))]
}

// loopConfig says how a loop uses its CPU.
func (e *Endpoint) loopConfig(i int) (dispatcher.LoopConfig, error) {
	cfg := dispatcher.LoopConfig{Spin: e.cfg.Spin}
	if !e.cfg.Dedicated {
		if e.cfg.PollerCPU != nil {
			return cfg, errors.New("PollerCPU is for dedicated mode: set Dedicated as well")
		}
		return cfg, nil
	}
	if goruntime.GOMAXPROCS(0) <= e.cfg.Dispatchers {
		return cfg, nil
	}
	cfg.Dedicated = true
	if e.cfg.PollerCPU == nil {
		return cfg, nil
	}
	own := *e.cfg.PollerCPU + i
	allowed, err := cpu.Allowed()
	if err == nil && !slices.Contains(allowed, own) {
		err = fmt.Errorf("poller CPU %d: this process may use %v", own, allowed)
	}
	cfg.Pin = func() {
		if err := cpu.PinThread(own); err != nil {
			slog.Warn("the poller is not pinned", "cpu", own, "error", err)
		}
	}
	return cfg, err
}

// describe is what Mode says of the dispatchers, for so many Ps.
func (c *EndpointConfig) describe(processors int) string {
	count, dedicated := c.Dispatchers, c.Dedicated && processors > c.Dispatchers
	switch {
	case count == 1 && dedicated:
		return ", dedicated dispatcher"
	case count == 1 && c.Dedicated:
		return ", shared dispatcher (dedicated needs two Ps, and GOMAXPROCS is 1: run one process per CPU)"
	case count == 1:
		return ""
	case dedicated:
		return fmt.Sprintf(", %d dedicated dispatchers", count)
	case c.Dedicated:
		return fmt.Sprintf(", %d shared dispatchers (dedicated needs %d Ps, one more than dispatchers, and GOMAXPROCS is %d)", count, count+1, processors)
	case processors < count:
		return fmt.Sprintf(", %d dispatchers (GOMAXPROCS is %d, so no more than that many run at once, and the others wait)", count, processors)
	}
	return fmt.Sprintf(", %d dispatchers", count)
}
