//go:build linux

package nic

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Offload is a feature of an interface that can be on or off.
type Offload struct {
	On         bool `json:"on"`
	Changeable bool `json:"changeable"` // with `ethtool -K`; a driver without the feature has it off for good
}

// String is on or off, as `ethtool -k` puts it.
func (o Offload) String() string {
	text := "off"
	if o.On {
		text = "on"
	}
	if !o.Changeable {
		text += " [fixed]"
	}
	return text
}

// The offloads that matter to XDP and steering, by the kernel's names (net/ethtool/common.c, netdev_features_strings).
const (
	OffloadLRO          = "rx-lro"                 // merges packets in the NIC: no XDP with it
	OffloadGROHW        = "rx-gro-hw"              // the same, reversibly
	OffloadNtuple       = "rx-ntuple-filter"       // steering rules
	OffloadRxHash       = "rx-hashing"             // RSS hash
	OffloadRxChecksum   = "rx-checksum"            // checked by the NIC
	OffloadTxChecksum   = "tx-checksum-ip-generic" // written by the NIC, any protocol
	OffloadTxChecksumV4 = "tx-checksum-ipv4"       // written by the NIC, TCP and UDP over IPv4
)

var offloadNames = []string{
	OffloadLRO, OffloadGROHW, OffloadNtuple, OffloadRxHash, OffloadRxChecksum, OffloadTxChecksum, OffloadTxChecksumV4,
}

const (
	featureStringSet = 4  // ETH_SS_FEATURES
	featureNameSize  = 32 // ETH_GSTRING_LEN
	// featureCountMax bounds what the kernel's answer makes us allocate; there are about 64 features.
	featureCountMax = 1024
)

// offloadsOf asks for the names of all features (ETHTOOL_GSTRINGS) and for their state (ETHTOOL_GFEATURES), and keeps those that matter.
func offloadsOf(name string) (map[string]Offload, error) {
	names, err := featureNames(name)
	if err != nil {
		return nil, err
	}
	blocks := (len(names) + 31) / 32
	request := make([]uint32, 2+4*blocks)
	request[0], request[1] = unix.ETHTOOL_GFEATURES, uint32(blocks)
	if err := askWords(name, request); err != nil {
		return nil, err
	}
	offloads := make(map[string]Offload)
	for i, feature := range names {
		if slices.Contains(offloadNames, feature) {
			offloads[feature] = featureState(request[2:], i)
		}
	}
	return offloads, nil
}

// featureState reads one bit of the blocks {available, requested, active, never_changed} of struct ethtool_get_features_block. A feature
// can be changed if it is available, and not one that the kernel never lets change.
func featureState(blocks []uint32, index int) Offload {
	block, bit := blocks[4*(index/32):], uint32(1)<<(index%32)
	return Offload{On: block[2]&bit != 0, Changeable: block[0]&bit != 0 && block[3]&bit == 0}
}

func featureNames(name string) ([]string, error) {
	count := []uint32{unix.ETHTOOL_GSSET_INFO, 0, 1 << featureStringSet, 0, 0} // command, reserved, a mask of 64 bits, one answer
	if err := askWords(name, count); err != nil {
		return nil, err
	}
	if count[4] > featureCountMax {
		return nil, fmt.Errorf("the kernel says that there are %d features; at most %d are read", count[4], featureCountMax)
	}
	request := make([]uint32, 3+count[4]*featureNameSize/4)
	request[0], request[1], request[2] = unix.ETHTOOL_GSTRINGS, featureStringSet, count[4]
	if err := askWords(name, request); err != nil {
		return nil, err
	}
	return splitNames(bytesOf(request[3:])), nil
}

// splitNames cuts names that are padded with zeros to featureNameSize.
func splitNames(text []byte) []string {
	var names []string
	for field := range slices.Chunk(text, featureNameSize) {
		names = append(names, unix.ByteSliceToString(field))
	}
	return names
}
