//go:build linux

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"
)

// The two roles of a lab, as they stand in [Place], in prefixes of standard error, and in errors.
const (
	RoleServer = "server"
	RoleClient = "client"
)

// graceDefault is how long a child may take to leave after the end of its input. It covers detaching an XDP program
// and unmapping rings (50 ms here) with room for a loaded machine.
const graceDefault = 5 * time.Second

// Node is one program of a lab.
type Node struct {
	// Path of the executable, Args without its name, Env beside this process's own environment.
	Path      string
	Args, Env []string
	// User is whom the program runs as; nil = as this process. Whoever may not find the executable by its path can run "/proc/self/exe".
	User *User
	// Files are the child's descriptors from [FirstFile] on.
	Files []*os.File
	// Stderr receives the child's standard error, each line prefixed with its role; nil throws it away. The last lines
	// are kept in any case and stand in the error of a child that dies.
	Stderr io.Writer
}

// FirstFile is the descriptor of a child's first file.
const FirstFile = 3

// User is somebody with less rights than root.
type User struct {
	UID, GID     uint32
	Capabilities []uintptr // the only ones: effective, permitted, inheritable and ambient
}

// Config describes a lab of two processes.
type Config struct {
	// Server and Client must both run [ServeChild] on their standard input and output.
	Server, Client Node
	// Loopback runs both on 127.0.0.1, or ::1, in the present namespace: no privilege, but no AF_XDP either.
	Loopback bool
	// IPv6 has both at IPv6 addresses, those of the link or ::1.
	IPv6 bool
	// Link is the veth pair between the two; the zero value is the usual one.
	Link PairConfig
	// Prepare, unless nil, runs when the link is there and before any child is. It is not called for loopback.
	Prepare func(*Pair) error
	// Grace is how long a child may take to exit once its input ended, before it is killed; 0 means 5 s.
	Grace time.Duration
}

// Lab is two child processes, each in its own network namespace, joined by a veth pair.
//
// Nothing is left behind, however this process ends: the namespaces have no name, the kernel removes them with
// their last process, and the children are killed with the thread that forked them.
type Lab struct {
	Server, Client *Process

	pair      *Pair
	closeOnce sync.Once
	closeErr  error
}

// Start makes the namespaces and the link, starts the server and then the client, and tells each its [Place]. When it
// returns, both have answered "go". ctx bounds the start only, not the life of the lab.
func Start(ctx context.Context, cfg Config) (*Lab, error) {
	cfg.Grace = cmp.Or(cfg.Grace, graceDefault)
	lab := &Lab{}
	if err := lab.start(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: start: %w", err), lab.Close())
	}
	return lab, nil
}

func (l *Lab) start(ctx context.Context, cfg Config) error {
	serverPlace, clientPlace := loopbackPlace(RoleServer, cfg.IPv6), loopbackPlace(RoleClient, cfg.IPv6)
	var serverNamespace, clientNamespace *Namespace
	if !cfg.Loopback {
		cfg.Link.IPv6 = cfg.Link.IPv6 || cfg.IPv6
		pair, err := NewPair(cfg.Link)
		if err != nil {
			return fmt.Errorf("%w; run as root, or set Config.Loopback for a lab without namespaces", err)
		}
		l.pair = pair
		if cfg.Prepare != nil {
			if err := cfg.Prepare(pair); err != nil {
				return err
			}
		}
		serverPlace, clientPlace = pairPlace(RoleServer, pair.A, pair.B, cfg.IPv6), pairPlace(RoleClient, pair.B, pair.A, cfg.IPv6)
		serverNamespace, clientNamespace = pair.A.Namespace, pair.B.Namespace
	}
	var err error
	if l.Server, err = startProcess(ctx, cfg.Server, serverPlace, serverNamespace, cfg.Grace); err != nil {
		return err
	}
	l.Client, err = startProcess(ctx, cfg.Client, clientPlace, clientNamespace, cfg.Grace)
	return err
}

// Close ends both children, the client first: it closes their input, waits up to Config.Grace each, and kills what
// is left. Then it removes the link and the namespaces. It reports children that had to be killed or that failed on
// their own, not those ended by [Process.Kill]. Only the first call does anything; all return the same error.
func (l *Lab) Close() error {
	l.closeOnce.Do(func() {
		var errs []error
		for _, process := range []*Process{l.Client, l.Server} {
			if process != nil {
				errs = append(errs, process.close())
			}
		}
		if l.pair != nil {
			errs = append(errs, l.pair.Close())
		}
		if err := errors.Join(errs...); err != nil {
			l.closeErr = fmt.Errorf("lab: close: %w", err)
		}
	})
	return l.closeErr
}

func loopbackPlace(role string, ipv6 bool) Place {
	address := netip.MustParsePrefix("127.0.0.1/8")
	if ipv6 {
		address = netip.MustParsePrefix("::1/128")
	}
	return Place{Role: role, Interface: "lo", Address: address, Peer: address.Addr()}
}

func pairPlace(role string, own, peer *End, ipv6 bool) Place {
	p := Place{Role: role, Namespaced: true, Interface: own.Interface, Address: own.Address, Peer: peer.Address.Addr()}
	if ipv6 {
		p.Address, p.Peer = own.Address6, peer.Address6.Addr()
	}
	return p
}
