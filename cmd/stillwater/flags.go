package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stillwater-rpc/stillwater/hw/cpu"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// defaultPort is where serve listens, and what an address without a port means.
const defaultPort = 7700

// endpointFlags are the flags of every command that opens a port.
type endpointFlags struct {
	sw.EndpointConfig
	address string
	cpus    cpuList
}

// register adds the flags to a command.
func (f *endpointFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Interface, "interface", "", "open AF_XDP sockets on this network `interface`; empty = kernel UDP")
	flags.Uint32Var(&f.Queue, "queue", 0, "first NIC `queue` that gets an AF_XDP socket")
	flags.IntVar(&f.Queues, "queues", 0, "`number` of queues from there on; 0 = all, at most 64")
	flags.StringVar(&f.address, "address", "",
		"local IPv4 `address`; empty = the interface's first one, or all with kernel UDP")
	flags.StringVar(&f.PinPath, "pin-path", "", "share the program that xdp load pinned in this `folder`, instead of loading one; needs CAP_NET_RAW alone")
	flags.BoolVar(&f.RequireXDP, "require-xdp", false, "fail where AF_XDP is not to be had, instead of using kernel UDP")
	flags.Var((*spin)(&f.Spin), "spin", "poll for this `duration` before blocking when idle; 0 = 50us, -1 or forever = never block")
	flags.Var(&f.cpus, "cpu", "pin the process to these `CPUs`, like 1 or 0-2,4, and set GOMAXPROCS to their number")
}

// config pins the process if that was asked for, and says how to open the endpoint.
func (f *endpointFlags) config() (sw.EndpointConfig, error) {
	cfg := f.EndpointConfig
	if f.address != "" {
		address, err := netip.ParseAddr(f.address)
		if err != nil || !address.Is4() {
			return cfg, usageError("--address %s: it must be an IPv4 address, like 10.0.0.1", f.address)
		}
		cfg.Address = address
	}
	if cfg.RequireXDP && cfg.Interface == "" {
		return cfg, usageError("--require-xdp needs --interface: AF_XDP has to know where")
	}
	if (f.Queue != 0 || f.Queues != 0) && cfg.Interface == "" {
		return cfg, usageError("--queue and --queues need --interface: kernel UDP has no NIC queues")
	}
	if cfg.PinPath != "" && cfg.Interface == "" {
		return cfg, usageError("--pin-path needs --interface: a shared program is attached to one")
	}
	if len(f.cpus) == 0 {
		return cfg, nil
	}
	if err := cpu.PinProcess(f.cpus...); err != nil {
		return cfg, err
	}
	runtime.GOMAXPROCS(len(f.cpus))
	return cfg, nil
}

// open opens the endpoint and warns where it is not what was asked for.
func (c *cli) open(f *endpointFlags) (*sw.Endpoint, error) {
	cfg, err := f.config()
	if err != nil {
		return nil, err
	}
	if cfg.Interface != "" {
		if err := checkInterface(cfg.Interface); err != nil {
			return nil, err // a slip of the pen, which falling back would hide
		}
	}
	ep, err := sw.Open(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Interface != "" && ep.PortName() != "xdp" {
		c.warn("fell back to kernel UDP; --require-xdp makes this an error", "mode", ep.Mode())
	}
	return ep, nil
}

// dial opens a client on an endpoint of its own. The returned function closes both.
func (c *cli) dial(f *endpointFlags, server string) (*sw.Client, func() error, error) {
	address, err := serverAddress(server)
	if err != nil {
		return nil, nil, err
	}
	ep, err := c.open(f)
	if err != nil {
		return nil, nil, err
	}
	client, err := sw.Dial(c.ctx, address, sw.ClientConfig{Shared: ep})
	if err != nil {
		return nil, nil, errors.Join(err, ep.Close())
	}
	return client, func() error { return errors.Join(client.Close(), ep.Close()) }, nil
}

// serverAddress completes the address of a server with the usual port.
func serverAddress(text string) (string, error) {
	if !strings.Contains(text, ":") {
		text = net.JoinHostPort(text, strconv.Itoa(defaultPort))
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return "", usageError("address %q: write host:port, like 10.0.0.1:%d, or a host alone", text, defaultPort)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", usageError("address %q: the port must be a number from 1 to 65535", text)
	}
	return text, nil
}

// spin is a time of polling, which may be for ever.
type spin time.Duration

// String is what Set reads.
func (s *spin) String() string {
	switch {
	case *s < 0:
		return "forever"
	case *s == 0:
		return "0"
	}
	return time.Duration(*s).String()
}

// Type names the value in help.
func (s *spin) Type() string { return "duration" }

// Set reads a duration, "forever", or -1 for the same.
func (s *spin) Set(text string) error {
	if text == "forever" || text == "-1" {
		*s = -1
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("write a duration like 50us, or forever")
	}
	*s = spin(d)
	return nil
}

// cpuList is a list of CPUs in the kernel's notation.
type cpuList []int

// String is what Set reads.
func (l *cpuList) String() string {
	words := make([]string, len(*l))
	for i, cpu := range *l {
		words[i] = strconv.Itoa(cpu)
	}
	return strings.Join(words, ",")
}

// Type names the value in help.
func (l *cpuList) Type() string { return "CPUs" }

// cpuMax keeps a slip like 0-99999999 from becoming a list of that length.
const cpuMax = 1 << 16

// Set reads a list like 0-2,4.
func (l *cpuList) Set(text string) error {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 32)
		to, err2 := strconv.ParseUint(last, 10, 32)
		if errors.Join(err, err2) != nil || from > to || to >= cpuMax {
			return fmt.Errorf("%q is no CPU and no range of CPUs: write a list like 1 or 0-2,4", part)
		}
		for cpu := from; cpu <= to; cpu++ {
			list = append(list, int(cpu))
		}
	}
	slices.Sort(list)
	*l = slices.Compact(list)
	return nil
}
