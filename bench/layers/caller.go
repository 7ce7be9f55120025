//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// attemptsEach is how many attempts each of the three callers may make at a call. It is the default of a client.
const attemptsEach = 3

// workers bounds the requests in service of a server, and is how many sessions a caller has: each of its handlers calls through one of its own, so that none waits for
// another's credit. It is the default of a server.
const workers = 256

// habits are what a caller does about calls that fail.
type habits struct {
	// Attempt is how long an attempt may go unanswered before the next one; Call, how long a call may take with all its attempts.
	Attempt time.Duration `json:"attempt_ns"`
	Call    time.Duration `json:"call_ns"`
	// Unbudgeted pays for any number of attempts. It is a setting: BudgetConfig.Ratio.
	Unbudgeted bool `json:"unbudgeted"`
	// Apart has each layer repeat by itself, whoever else does. There is no setting for it: a handler's calls have a context of their own, and not the handler's, which says that
	// somebody above repeats. With that go the deadline, and the cancellation.
	Apart bool `json:"apart"`
	// Stubborn repeats what was refused with "do not retry". There is no setting for that either: the caller makes the attempts by itself, each as a call of its own that is
	// not repeated, and says to its own caller that it was unavailable.
	Stubborn bool `json:"stubborn"`
}

// retry is the configuration of the client.
func (h *habits) retry() sw.RetryConfig {
	c := sw.RetryConfig{Attempts: attemptsEach, Timeout: h.Attempt}
	if h.Unbudgeted {
		c.Budget = sw.BudgetConfig{Ratio: attemptsEach, Burst: 1 << 20}
	}
	c.Off = h.Stubborn
	return c
}

// caller calls the next server, through any of its sessions that is free.
type caller struct {
	habits
	client  *sw.Client
	pool    chan *sw.Session
	counter *counter
	calls   atomic.Uint64
}

// dialCaller opens the sessions, and makes a call on each, since one that its server does not know yet is another thing.
func dialCaller(place *lab.Place, address string, h habits) (*caller, error) {
	c := &caller{habits: h, pool: make(chan *sw.Session, workers), counter: newCounter()}
	endpoint := endpointAt(place, 0)
	endpoint.WrapPort = c.counter.wrap
	var err error
	if c.client, err = sw.Dial(context.Background(), address, sw.ClientConfig{Endpoint: endpoint, Retry: h.retry()}); err != nil {
		return nil, err
	}
	for i := range workers {
		session := &c.client.Session
		if i > 0 {
			if session, err = c.client.NewSession(); err != nil {
				return nil, errors.Join(err, c.client.Close())
			}
		}
		if _, err = session.Call(context.Background(), methodGreet, nil, nil); err != nil {
			return nil, errors.Join(err, c.client.Close())
		}
		c.pool <- session
	}
	return c, nil
}

// endpointAt is the port of a server or a client, on one end of a link.
func endpointAt(place *lab.Place, port uint16) sw.EndpointConfig {
	return sw.EndpointConfig{
		Interface: place.Interface, Address: place.Address.Addr(), Port: port, RequireXDP: true, TrustedNetwork: true,
	}
}

// call makes a call for the user's request with a mark.
func (c *caller) call(ctx context.Context, mark uint64) error {
	session := <-c.pool
	defer func() { c.pool <- session }()
	if c.Apart {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, c.Call)
	defer cancel()
	if !c.Stubborn {
		return c.once(sw.Repeatable(ctx), session, mark)
	}
	for range attemptsEach {
		if c.once(ctx, session, mark) == nil {
			return nil
		}
	}
	return sw.ErrUnavailable
}

func (c *caller) once(ctx context.Context, session *sw.Session, mark uint64) error {
	var payload [payloadBytes]byte
	binary.BigEndian.PutUint64(payload[:], mark)
	binary.BigEndian.PutUint64(payload[markBytes:], c.calls.Add(1))
	_, err := session.Call(ctx, methodWork, payload[:], nil)
	return err
}

// stats are those of its port.
func (c *caller) stats() (sw.Stats, error) { return c.client.Endpoint().Stats() }
