//go:build linux

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// ChainNode is one program of a [Chain].
type ChainNode struct {
	Role string // as it stands in [Place], in prefixes of standard error, and in errors
	Node
}

// Chain is child processes in a row, each in its own network namespace, with a veth pair between each and the next. Nothing is routed: each sees its two neighbours
// alone. As with a [Lab], nothing is left behind.
type Chain struct {
	Processes []*Process // in the order of the nodes

	namespaces []*Namespace
	links      []*Pair
	closeOnce  sync.Once
	closeErr   error
}

// chainMax is how many nodes a chain may have: the number of a link is a byte of its addresses.
const chainMax = 100

// StartChain makes the namespaces and links, and starts the nodes, the last one first. Each is told its [Place]: Interface is the end of the link to the node before, or
// to the next one for the first node; Below is that to the next one. When it returns, all have answered "go". Grace is how long a child may take to exit
// once its input ended, 0 = 5 s. ctx bounds the start only.
func StartChain(ctx context.Context, grace time.Duration, nodes ...ChainNode) (*Chain, error) {
	c := &Chain{}
	if err := c.start(ctx, cmp.Or(grace, graceDefault), nodes); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: start a chain: %w", err), c.Close())
	}
	return c, nil
}

// The names of the two interfaces of a node.
const (
	chainAbove = "veth0"
	chainBelow = "veth1"
)

func (c *Chain) start(ctx context.Context, grace time.Duration, nodes []ChainNode) error {
	if len(nodes) < 2 || len(nodes) > chainMax {
		return fmt.Errorf("%d nodes: must be 2 to %d", len(nodes), chainMax)
	}
	for range nodes {
		namespace, err := NewNamespace()
		if err != nil {
			return err
		}
		c.namespaces = append(c.namespaces, namespace)
	}
	for i := range len(nodes) - 1 {
		pair, err := NewPair(PairConfig{
			NamespaceA: c.namespaces[i], NameA: chainBelow, AddressA: linkAddress(i, 1),
			NamespaceB: c.namespaces[i+1], NameB: chainAbove, AddressB: linkAddress(i, 2),
		})
		if err != nil {
			return err
		}
		c.links = append(c.links, pair)
	}
	c.Processes = make([]*Process, len(nodes))
	for i := len(nodes) - 1; i >= 0; i-- {
		var err error
		if c.Processes[i], err = startProcess(ctx, nodes[i].Node, c.place(i, nodes[i].Role), c.namespaces[i], grace); err != nil {
			return err
		}
	}
	return nil
}

// linkAddress is that of one end of a link.
func linkAddress(link int, end byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 78, byte(link), end}), 24)
}

// place says where a node stands.
func (c *Chain) place(i int, role string) Place {
	if i == 0 {
		p := pairPlace(role, c.links[0].A, c.links[0].B, false)
		below := p
		p.Below = &below
		return p
	}
	p := pairPlace(role, c.links[i-1].B, c.links[i-1].A, false)
	if i < len(c.links) {
		below := pairPlace(role, c.links[i].A, c.links[i].B, false)
		p.Below = &below
	}
	return p
}

// In runs fn inside the namespace of a node, as [Namespace.Do] does.
func (c *Chain) In(node int, fn func() error) error { return c.namespaces[node].Do(fn) }

// Close ends the children, the first one first, and removes links and namespaces, as [Lab.Close] does.
func (c *Chain) Close() error {
	c.closeOnce.Do(func() {
		var errs []error
		for _, process := range c.Processes {
			if process != nil {
				errs = append(errs, process.close())
			}
		}
		for _, link := range c.links {
			errs = append(errs, link.Close())
		}
		for _, namespace := range c.namespaces {
			errs = append(errs, namespace.Close())
		}
		if err := errors.Join(errs...); err != nil {
			c.closeErr = fmt.Errorf("lab: close a chain: %w", err)
		}
	})
	return c.closeErr
}
