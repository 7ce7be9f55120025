//go:build linux

package nic

// The structures of include/uapi/linux/ethtool.h by which receive rules travel. Integers are in the host's order, except for what stands in a
// packet, which is big endian.

// flowUDPv4 is UDP_V4_FLOW, a flow type with the fields of flowUDPv4Fields. Bits above it, as FLOW_EXT, say that more is matched.
const flowUDPv4 = 0x02

// Locations of rules.
const (
	locationSpecial = 0x80000000 // RX_CLS_LOC_SPECIAL: in an answer, the driver can choose a place by itself
	locationAny     = 0xffffffff // RX_CLS_LOC_ANY: let it
)

// flowUDPv4Fields is union ethtool_flow_union with its struct ethtool_tcpip4_spec.
type flowUDPv4Fields struct {
	sourceAddress, destinationAddress [4]byte
	sourcePort, destinationPort       [2]byte
	tos                               uint8
	_                                 [39]byte // the union's other arms are longer
}

// flowExt is struct ethtool_flow_ext.
type flowExt struct {
	_              [2]byte
	destinationMAC [6]byte
	vlanType, vlan [2]byte
	userData       [2][4]byte
}

// flowSpec is struct ethtool_rx_flow_spec: a bit that is set in a mask is compared.
type flowSpec struct {
	flowType uint32
	value    flowUDPv4Fields
	valueExt flowExt
	mask     flowUDPv4Fields
	maskExt  flowExt
	action   uint64 // the queue; all ones = drop; the upper half names a virtual function
	location uint32
}

// rxnfc is struct ethtool_rxnfc.
type rxnfc struct {
	command  uint32
	flowType uint32
	data     uint64
	spec     flowSpec
	count    uint32 // rule_cnt, or rss_context
}

// rxnfcTableOffset is where the list of locations stands that follows the structure, in its padding.
const rxnfcTableOffset = 188
