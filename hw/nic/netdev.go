//go:build linux

package nic

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The netdev family of generic netlink, include/uapi/linux/netdev.h: what drivers say of XDP since Linux 6.3, and of their queues since 6.8.
const (
	netdevFamily = "netdev"

	netdevDevGet   = 1
	netdevQueueGet = 10
	netdevNAPIGet  = 11

	devIndex, devXDPFeatures, devMetadata                   = 1, 3, 5
	queueID, queueIndex, queueType, queueNAPI               = 1, 2, 3, 4
	napiIndex, napiID, napiIRQ, napiDefer, napiFlush        = 1, 2, 3, 5, 6
	queueTypeRx, queueTypeTx                         uint32 = 0, 1
)

// The features of XDP that matter here, by the kernel's names (Documentation/netlink/specs/netdev.yaml).
const (
	XDPBasic    = "basic"        // native mode
	XDPRedirect = "redirect"     // to a socket
	XDPZeroCopy = "xsk-zerocopy" // AF_XDP without a copy
)

var xdpFeatureNames = []string{XDPBasic, XDPRedirect, "ndo-xmit", XDPZeroCopy, "hw-offload", "rx-sg", "ndo-xmit-sg"}

var metadataNames = []string{"timestamp", "hash", "vlan-tag"}

// XDP is what the driver says that it can do. A trial may still fail, for an MTU that is too large or a queue in use.
type XDP struct {
	Features []string `json:"features"`
	Metadata []string `json:"rx_metadata"` // what a program can ask the NIC about a packet: timestamp, hash, vlan-tag
}

// NAPI is one of the kernel's polling contexts of the interface, with the queues that it polls.
type NAPI struct {
	ID            uint32   `json:"id"`
	IRQ           *uint32  `json:"irq,omitempty"` // absent where the driver does not say
	RxQueues      []uint32 `json:"rx_queues"`
	TxQueues      []uint32 `json:"tx_queues"`
	DeferHardIRQs uint32   `json:"defer_hard_irqs_count"` // empty polls before interrupts are switched on again
	FlushTimeout  uint64   `json:"gro_flush_timeout_ns"`
}

// attributes are the attributes of one message, by their number.
type attributes map[uint16][]byte

// number reads an unsigned integer: the kernel sends 4 bytes where they are enough, or 8.
func (a attributes) number(kind uint16) (uint64, bool) {
	switch value := a[kind]; len(value) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(value)), true
	case 8:
		return binary.NativeEndian.Uint64(value), true
	}
	return 0, false
}

func (a attributes) number32(kind uint16) uint32 {
	n, _ := a.number(kind)
	return uint32(n)
}

// genlHeader is struct genlmsghdr: command, version, and two bytes that this family wants to be zero, where netlink's own type sends what lies in memory.
type genlHeader [nl.SizeofGenlmsg]byte

// Len is the header's length on the wire.
func (h genlHeader) Len() int { return len(h) }

// Serialize is the header on the wire.
func (h genlHeader) Serialize() []byte { return h[:] }

// askNetdev asks about one interface. The kernel is told the index in an attribute of a number that depends on the command.
func askNetdev(command uint8, dump bool, indexAttribute, index int) ([]attributes, error) {
	family, err := netlink.GenlFamilyGet(netdevFamily)
	if err != nil {
		return nil, fmt.Errorf("the kernel has no netdev family (Linux 6.3 or later has): %w", err)
	}
	flags := unix.NLM_F_ACK
	if dump {
		flags = unix.NLM_F_DUMP
	}
	request := nl.NewNetlinkRequest(int(family.ID), flags)
	request.AddData(genlHeader{command, uint8(family.Version)})
	request.AddData(nl.NewRtAttr(indexAttribute, nl.Uint32Attr(uint32(index))))
	messages, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	answers := make([]attributes, len(messages))
	for i, message := range messages {
		if len(message) < nl.SizeofGenlmsg {
			return nil, fmt.Errorf("a netdev message of %d bytes", len(message))
		}
		parsed, err := nl.ParseRouteAttr(message[nl.SizeofGenlmsg:])
		if err != nil {
			return nil, err
		}
		answers[i] = attributes{}
		for _, attribute := range parsed {
			answers[i][attribute.Attr.Type&^unix.NLA_F_NESTED] = attribute.Value
		}
	}
	return answers, nil
}

func xdpOf(index int) (*XDP, error) {
	answers, err := askNetdev(netdevDevGet, false, devIndex, index)
	if err != nil {
		return nil, err
	}
	if len(answers) != 1 {
		return nil, fmt.Errorf("%d answers about one interface", len(answers))
	}
	features, ok := answers[0].number(devXDPFeatures)
	if !ok {
		return nil, fmt.Errorf("an answer without XDP features")
	}
	metadata, _ := answers[0].number(devMetadata)
	return &XDP{Features: namesOf(features, xdpFeatureNames), Metadata: namesOf(metadata, metadataNames)}, nil
}

// namesOf names the bits that are set; those of a newer kernel have a number.
func namesOf(bits uint64, names []string) []string {
	found := []string{}
	for i := range 64 {
		switch {
		case bits&(1<<i) == 0:
		case i < len(names):
			found = append(found, names[i])
		default:
			found = append(found, fmt.Sprintf("bit-%d", i))
		}
	}
	return found
}

// napisOf asks for the polling contexts and for the queues of each.
func napisOf(index int) ([]NAPI, error) {
	contexts, err := askNetdev(netdevNAPIGet, true, napiIndex, index)
	if err != nil {
		return nil, err
	}
	queues, err := askNetdev(netdevQueueGet, true, queueIndex, index)
	if err != nil {
		return nil, err
	}
	return joinNAPIs(contexts, queues), nil
}

func joinNAPIs(contexts, queues []attributes) []NAPI {
	napis := make([]NAPI, len(contexts))
	for i, c := range contexts {
		n := NAPI{ID: c.number32(napiID), RxQueues: []uint32{}, TxQueues: []uint32{}, DeferHardIRQs: c.number32(napiDefer)}
		n.FlushTimeout, _ = c.number(napiFlush)
		if _, told := c.number(napiIRQ); told {
			irq := c.number32(napiIRQ)
			n.IRQ = &irq
		}
		for _, q := range queues {
			if _, told := q.number(queueNAPI); !told || q.number32(queueNAPI) != n.ID {
				continue
			}
			switch q.number32(queueType) {
			case queueTypeRx:
				n.RxQueues = append(n.RxQueues, q.number32(queueID))
			case queueTypeTx:
				n.TxQueues = append(n.TxQueues, q.number32(queueID))
			}
		}
		napis[i] = n
	}
	return napis
}
