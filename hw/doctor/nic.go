//go:build linux

package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// etherOverhead is what an Ethernet packet has beyond the MTU, with one VLAN tag.
const etherOverhead = 14 + 4

// The features that are looked at, by the kernel's names (net/ethtool/common.c).
const (
	offloadLRO        = "rx-lro"
	offloadGROHW      = "rx-gro-hw"
	offloadTxChecksum = "tx-checksum-ip-generic"
)

// ask is a command about the interface, which shows what could not be found out here.
func (n *NIC) ask(form string) string { return fmt.Sprintf(form, n.Interface) }

// nicInterface is there to say that nothing was said of an interface.
func nicInterface(e *examination) []Item {
	if e.NIC != nil {
		return nil
	}
	s := subject{id: "nic.interface", want: "an interface that is named", why: "what its driver can do decides most"}
	name := "IFACE"
	if len(e.Interfaces) > 0 {
		name = e.Interfaces[0]
	}
	have := "none was named"
	if len(e.Interfaces) > 0 {
		have += "; there are " + strings.Join(e.Interfaces, ", ")
	}
	return s.unknown(have, "stillwater doctor --interface "+name)
}

// onNIC makes a check that needs an interface.
func onNIC(judge func(*examination, *NIC) []Item) check {
	return func(e *examination) []Item {
		if e.NIC == nil {
			return nil
		}
		return judge(e, e.NIC)
	}
}

var nicLink = onNIC(func(_ *examination, n *NIC) []Item {
	s := subject{"nic.link", "up", "a socket cannot be bound to an interface that is down", n.ask("ip link set dev %s up")}
	switch {
	case n.Up == nil:
		return s.unknown("its state cannot be read", n.ask("ip link show dev %s"))
	case !*n.Up:
		return s.fail("down")
	}
	return s.ok("up")
})

var nicDriver = onNIC(func(e *examination, n *NIC) []Item {
	s := subject{id: "nic.driver", why: "the driver decides between native and generic mode, and between zero-copy and copy"}
	if n.Driver == "" {
		return s.unknown("the driver does not say", n.ask("ethtool -i %s"))
	}
	kernel, ok := e.kernel()
	zeroCopy, known := hint(n.Driver, kernel)
	switch {
	case !ok || !known:
		return s.ok("%s; nothing is known of it", n.Driver)
	case zeroCopy:
		return s.ok("%s, known for zero-copy on this kernel", n.Driver)
	}
	return s.ok("%s, not known for zero-copy on this kernel", n.Driver)
})

// nicProgram is about a program that stands at our place. Ours is a Stillwater at work, which only keeps us from a trial.
var nicProgram = onNIC(func(_ *examination, n *NIC) []Item {
	s := subject{id: "nic.program", want: "no program, or ours", why: "an interface has one place for XDP, and we evict nobody"}
	switch p := n.Program; {
	case !n.ProgramKnown:
		return s.unknown("whose program is there can be seen on the host itself only, with CAP_SYS_ADMIN", n.ask("stillwater xdp status %s # as root"))
	case p == nil:
		return s.ok("none")
	case p.Ours:
		return s.ok("ours: %s", p.Text)
	default:
		s.cure = p.Cure
		return s.fail("%s", p.Text)
	}
})

var nicQueues = onNIC(func(e *examination, n *NIC) []Item {
	s := subject{
		"nic.queues", fmt.Sprintf("at most %d", e.Needs.QueuesMax), "what arrives on a queue without a socket goes through the kernel, which is slower",
		fmt.Sprintf("ethtool -L %s combined %d", n.Interface, e.Needs.QueuesMax),
	}
	switch {
	case n.QueueCount == 0:
		return s.unknown("the driver does not say", n.ask("ethtool -l %s"))
	case n.QueueCount > e.Needs.QueuesMax:
		return s.warn("%d receive queues", n.QueueCount)
	}
	return s.ok("%d receive queues", n.QueueCount)
})

// nicMetadata informs: arrivals are stamped by the program, so that nothing depends on the NIC's own word.
var nicMetadata = onNIC(func(_ *examination, n *NIC) []Item {
	s := subject{id: "nic.metadata", why: "a stamp of the NIC would be closer to the wire than that of our program"}
	switch {
	case n.Features == nil:
		return s.unknown("the driver does not say", n.ask("ethtool -T %s"))
	case len(n.Metadata) == 0:
		return s.ok("none of the NIC; our program stamps arrivals itself")
	}
	return s.ok("%s of the NIC; our program stamps arrivals itself", strings.Join(n.Metadata, ", "))
})

var nicMTU = onNIC(func(e *examination, n *NIC) []Item {
	limit := e.Needs.PacketSizeMax - etherOverhead
	s := subject{
		"nic.mtu", fmt.Sprintf("at most %d", limit),
		fmt.Sprintf("a frame holds %d bytes, so longer packets go through the kernel, and from about 3500 on native mode is refused", e.Needs.PacketSizeMax),
		n.ask("ip link set dev %s mtu 1500"),
	}
	switch {
	case n.MTUBytes == 0:
		return s.unknown("it cannot be read", n.ask("ip link show dev %s"))
	case n.MTUBytes > limit:
		return s.warn("%d", n.MTUBytes)
	}
	return s.ok("%d", n.MTUBytes)
})

// offload judges a feature that should be off.
func (n *NIC) offload(s subject, name string) []Item {
	switch offload, known := n.Offloads[name]; {
	case !known:
		return s.unknown("the driver does not say", n.ask("ethtool -k %s"))
	case offload.On && !offload.Changeable:
		s.cure = "# use another interface: the driver does not let it be switched off; of a virtual one, the hypervisor may"
		return s.warn("on, for good")
	case offload.On:
		return s.warn("on")
	}
	return s.ok("off")
}

var nicLRO = onNIC(func(_ *examination, n *NIC) []Item {
	return n.offload(subject{
		"nic.lro", "off", "packets that the NIC merged are no packets for XDP: most drivers refuse it, or switch this off for it", n.ask("ethtool -K %s lro off"),
	}, offloadLRO)
})

var nicGROHW = onNIC(func(_ *examination, n *NIC) []Item {
	return n.offload(subject{
		"nic.gro_hw", "off", "packets that the NIC merged are no packets for XDP: some drivers refuse it, or switch this off for it",
		n.ask("ethtool -K %s rx-gro-hw off"),
	}, offloadGROHW)
})

// nicTxChecksum is about veth alone, where no hardware completes what the sender leaves open.
var nicTxChecksum = onNIC(func(_ *examination, n *NIC) []Item {
	if n.Driver != "veth" {
		return nil
	}
	return n.offload(subject{
		"nic.tx_checksum", "off, at both ends", "kernel senders on a veth pair leave UDP checksums to hardware that is not there; AF_XDP sees them wrong, and drops the packet",
		n.ask("ethtool -K %s tx off"),
	}, offloadTxChecksum)
})

var nicCoalescing = onNIC(func(_ *examination, n *NIC) []Item {
	s := subject{
		"nic.coalescing", "adaptive off, rx 0 us", "an interrupt that is held back adds to the latency of a poller that sleeps",
		n.ask("ethtool -C %s adaptive-rx off rx-usecs 0"),
	}
	switch {
	case n.AdaptiveRx == nil:
		return s.unknown("the driver does not say", n.ask("ethtool -c %s"))
	case *n.AdaptiveRx:
		return s.warn("adaptive")
	case n.RxUsecs > 0:
		return s.warn("rx %d us", n.RxUsecs)
	}
	return s.ok("adaptive off, rx 0 us")
})

var steeringRules = onNIC(func(_ *examination, n *NIC) []Item {
	s := subject{
		"steering.rules", "rules, or one queue", "our packets come on any queue: each needs a socket, and each is polled",
		n.ask("ethtool -K %s ntuple on"),
	}
	switch {
	case n.QueueCount == 1:
		return s.ok("one queue, nothing to steer")
	case n.HasRules == nil:
		return s.unknown("the driver does not say", n.ask("ethtool -n %s"))
	case *n.HasRules:
		return s.ok("possible, %d rules are there", n.RuleCount)
	}
	s.cure = n.ask("ethtool -K %[1]s ntuple on || ethtool -L %[1]s combined 1")
	return s.warn("the driver has no rules, or they are off")
})

var steeringHash = onNIC(func(_ *examination, n *NIC) []Item {
	s := subject{
		"steering.hash", "sdfn", "if ports are not hashed, all flows of one peer come on one queue", n.ask("ethtool -N %s rx-flow-hash udp4 sdfn"),
	}
	ports := slices.Contains([]string{"sdfn", "tsdfn"}, n.FlowHash)
	switch {
	case n.QueueCount == 1:
		return s.ok("one queue, nothing to spread")
	case n.FlowHash == "":
		return s.unknown("the driver does not say", n.ask("ethtool -n %s rx-flow-hash udp4"))
	case !ports:
		return s.warn("%s", n.FlowHash)
	}
	return s.ok("%s", n.FlowHash)
})
