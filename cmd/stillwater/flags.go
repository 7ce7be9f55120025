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
	address    string
	cpus       cpuList
	dispatcher string
	pollerCPU  int
	capture    captureFlags
}

// register adds the flags to a command.
func (f *endpointFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Interface, "interface", "", "open AF_XDP sockets on this network `interface`; empty = kernel UDP")
	flags.Uint32Var(&f.Queue, "queue", 0, "first NIC `queue` that gets an AF_XDP socket")
	flags.IntVar(&f.Queues, "queues", 0, "`number` of queues from there on; 0 = all, at most 64")
	flags.Var(implementation{&f.Sockets}, "xsk", "whose AF_XDP sockets: `implementation` is own, or asavie, which serves one queue")
	flags.StringVar(&f.address, "address", "",
		"local `address`, IPv4 or IPv6; empty = the interface's first of each, or all with kernel UDP")
	flags.StringVar(&f.PinPath, "pin-path", "", "share the program that xdp load pinned in this `folder`, instead of loading one; needs CAP_NET_RAW alone")
	flags.Var((*rung)(&f.Mode), "mode",
		"what carries packets: `rung` is auto (the best that works), or exactly zero-copy, copy, generic (all AF_XDP) or udp (kernel UDP)")
	flags.BoolVar(&f.RequireXDP, "require-xdp", false, "fail where AF_XDP is not to be had, instead of using kernel UDP")
	flags.Var((*spin)(&f.Spin), "spin", "poll for this `duration` before blocking when idle; 0 = 50us, -1 or forever = never block")
	flags.StringVar(&f.dispatcher, "dispatcher", "shared", "`mode` of the loop: shared takes turns with the handlers, dedicated polls on a thread of its own beside them")
	flags.IntVar(&f.Dispatchers, "dispatchers", 1, "`number` of loops, each with queues, sessions and workers of its own; at most one for each queue")
	flags.IntVar(&f.pollerCPU, "poller-cpu", -1, "pin the thread of --dispatcher dedicated to this `CPU`, those of several to this and the next ones; negative = the kernel chooses")
	flags.Var(&f.cpus, "cpu", "pin the process to these `CPUs`, like 1 or 0-2,4, and set GOMAXPROCS to their number")
	f.capture.register(flags)
}

// config pins the process if that was asked for, and says how to open the endpoint.
func (f *endpointFlags) config() (sw.EndpointConfig, error) {
	cfg := f.EndpointConfig
	if f.address != "" {
		address, err := netip.ParseAddr(f.address)
		if err != nil {
			return cfg, usageError("--address %s: it must be an IP address, like 10.0.0.1 or fd00::1", f.address)
		}
		cfg.Address = address
	}
	if cfg.RequireXDP && cfg.Interface == "" {
		return cfg, usageError("--require-xdp needs --interface: AF_XDP has to know where")
	}
	if (f.Queue != 0 || f.Queues != 0) && cfg.Interface == "" {
		return cfg, usageError("--queue and --queues need --interface: kernel UDP has no NIC queues")
	}
	if err := errors.Join(f.checkMode(), f.capture.check()); err != nil {
		return cfg, err
	}
	switch {
	case cfg.PinPath != "" && cfg.Interface == "":
		return cfg, usageError("--pin-path needs --interface: a shared program is attached to one")
	case cfg.Sockets == nil:
	case cfg.Interface == "":
		return cfg, usageError("--xsk asavie needs --interface: kernel UDP has no AF_XDP sockets")
	case cfg.Queues > 1:
		return cfg, usageError("--xsk asavie serves one queue: give --queues 1, or --xsk own")
	}
	if err := f.loop(&cfg); err != nil {
		return cfg, err
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

// loop says how the endpoint's loop uses its CPU.
func (f *endpointFlags) loop(cfg *sw.EndpointConfig) error {
	if err := f.checkDispatchers(); err != nil {
		return err
	}
	switch f.dispatcher {
	case "shared":
		if f.pollerCPU >= 0 {
			return usageError("--poller-cpu is for --dispatcher dedicated: in shared mode the loop is where its handlers are")
		}
	case "dedicated":
		cfg.Dedicated = true
		if f.pollerCPU >= 0 {
			cfg.PollerCPU = &f.pollerCPU
		}
	default:
		return usageError("--dispatcher %s: it must be shared or dedicated", f.dispatcher)
	}
	return nil
}

// checkDispatchers refuses a number that cannot be had, and what is for one dispatcher alone.
func (f *endpointFlags) checkDispatchers() error {
	switch n := f.Dispatchers; {
	case n < 1 || n > sw.DispatchersMax:
		return usageError("--dispatchers %d: it must be 1 to %d", n, sw.DispatchersMax)
	case n > 1 && f.Queues != 0 && f.Queues < n:
		return usageError("--dispatchers %d on --queues %d: each needs a queue of its own", n, f.Queues)
	case n > 1 && f.Sockets != nil:
		return usageError("--xsk asavie serves one queue, and so one dispatcher: give --dispatchers 1, or --xsk own")
	case n > 1 && f.capture.file != "":
		return usageError("--capture is of one dispatcher: give --dispatchers 1 with it")
	}
	return nil
}

// checkMode refuses flags that contradict the rung that was named.
func (f *endpointFlags) checkMode() error {
	switch udp := f.Mode == sw.ModeUDP; {
	case !udp && f.Mode != sw.ModeAuto && f.Interface == "":
		return usageError("--mode %v needs --interface: AF_XDP has to know where", f.Mode)
	case udp && f.RequireXDP:
		return usageError("--mode udp and --require-xdp contradict each other")
	case udp && (f.Queue != 0 || f.Queues != 0 || f.PinPath != "" || f.Sockets != nil):
		return usageError("--mode udp goes without --queue, --queues, --pin-path and --xsk asavie, which are for AF_XDP")
	}
	return nil
}

// checked is config, and refuses an interface that is not there: a slip of the pen, which falling back would hide.
func (f *endpointFlags) checked() (sw.EndpointConfig, error) {
	cfg, err := f.config()
	if err == nil && cfg.Interface != "" {
		err = checkInterface(cfg.Interface)
	}
	return cfg, err
}

// endpoint is the configuration that the flags say, with the capture.
func (c *cli) endpoint(f *endpointFlags) (sw.EndpointConfig, error) {
	cfg, err := f.checked()
	if err == nil {
		err = c.tap(&f.capture, &cfg)
	}
	return cfg, err
}

// open opens the endpoint and warns where it is not what was asked for.
func (c *cli) open(f *endpointFlags) (*sw.Endpoint, error) {
	cfg, err := c.endpoint(f)
	if err != nil {
		return nil, err
	}
	ep, err := sw.Open(cfg)
	if err != nil {
		return nil, err
	}
	c.warnFallback(cfg, ep)
	return ep, nil
}

func (c *cli) warnFallback(cfg sw.EndpointConfig, ep *sw.Endpoint) {
	if cfg.Interface != "" && cfg.Mode != sw.ModeUDP && ep.PortName() != "xdp" {
		c.warn("fell back to kernel UDP; --require-xdp makes this an error", "mode", ep.Mode())
	}
}

// dial opens a client on an endpoint of its own, which is closed with it. Of the configuration it takes the scheme.
func (c *cli) dial(f *endpointFlags, server string, config sw.ClientConfig) (*sw.Client, error) {
	address, err := serverAddress(server)
	if err != nil {
		return nil, err
	}
	cfg, err := c.endpoint(f)
	if err != nil {
		return nil, err
	}
	config.Endpoint = cfg
	client, err := sw.Dial(c.ctx, address, config)
	if errors.Is(err, sw.ErrUnreachable) {
		return nil, usageError("%w; that is --address and --interface here", err)
	}
	if err != nil {
		return nil, err
	}
	c.warnFallback(cfg, client.Endpoint())
	return client, nil
}

// serverAddress completes the address of a server with the usual port. An IPv6 address without a port needs no brackets.
func serverAddress(text string) (string, error) {
	host := text
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(text, ":") {
		text = net.JoinHostPort(host, strconv.Itoa(defaultPort))
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return "", usageError("address %q: write host:port, like 10.0.0.1:%d or [fd00::1]:%[2]d, or a host alone", text, defaultPort)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", usageError("address %q: the port must be a number from 1 to 65535", text)
	}
	return text, nil
}

// rung is a mode by its name.
type rung sw.Mode

// String is what Set reads.
func (r *rung) String() string { return sw.Mode(*r).String() }

// Type names the value in help.
func (r *rung) Type() string { return "rung" }

// Set takes a name.
func (r *rung) Set(text string) error {
	mode, err := sw.ParseMode(text)
	if err != nil {
		return errors.New("it must be auto, zero-copy, copy, generic or udp")
	}
	*r = rung(mode)
	return nil
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
