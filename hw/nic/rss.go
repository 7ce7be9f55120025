//go:build linux

package nic

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RSS says how the NIC spreads flows over its queues: a hash picks an entry of the table, which holds a queue.
type RSS struct {
	Function  string   `json:"function"` // toeplitz, xor or crc32
	KeyBytes  int      `json:"key_bytes"`
	TableSize int      `json:"table_size"`
	Entries   []uint32 `json:"queue_entry_counts"` // entries of the table by queue, from queue 0 on
}

// errNoRSS is of a driver that answers, and has neither a table nor a key.
var errNoRSS = fmt.Errorf("the driver has no RSS: %w", unix.EOPNOTSUPP)

// rssSizeMax bounds what a driver's answer makes us allocate: tables have up to a few thousand entries, keys 40 to 52 bytes.
const rssSizeMax = 1 << 16

// rxfhWords is the length of struct ethtool_rxfh without its table: command, rss_context, indir_size, key_size, {hfunc, input_xfrm, 2 reserved}, reserved.
const rxfhWords = 6

// rssOf asks by ETHTOOL_GRSSH, for the sizes first.
func rssOf(name string) (*RSS, error) {
	request := make([]uint32, rxfhWords)
	request[0] = unix.ETHTOOL_GRSSH
	if err := askWords(name, request); err != nil {
		return nil, err
	}
	table, key := request[2], request[3]
	if table > rssSizeMax || key > rssSizeMax {
		return nil, fmt.Errorf("the driver says that its RSS table has %d entries and its key %d bytes; at most %d are read", table, key, rssSizeMax)
	}
	request = make([]uint32, rxfhWords+table+(key+3)/4)
	request[0], request[2], request[3] = unix.ETHTOOL_GRSSH, table, key
	if err := askWords(name, request); err != nil {
		return nil, err
	}
	return rssFrom(request, int(table), int(key)), nil
}

func rssFrom(answer []uint32, table, key int) *RSS {
	r := &RSS{Function: hashFunction(bytesOf(answer[4:5])[0]), KeyBytes: key, TableSize: table}
	for _, queue := range answer[rxfhWords : rxfhWords+table] {
		if queue >= rssSizeMax {
			continue // no queue has such a number
		}
		for int(queue) >= len(r.Entries) {
			r.Entries = append(r.Entries, 0)
		}
		r.Entries[queue]++
	}
	return r
}

// hashFunction names a bit of ETH_RSS_HASH_*.
func hashFunction(bits byte) string {
	switch bits {
	case 1:
		return "toeplitz"
	case 2:
		return "xor"
	case 4:
		return "crc32"
	}
	return "unknown"
}

// The fields of a packet that a hash can take in, RXH_* of include/uapi/linux/ethtool.h, with the letters of `ethtool -N ... rx-flow-hash`.
var hashFields = []struct {
	bit    uint64
	letter string
}{
	{1 << 1, "m"}, {1 << 2, "v"}, {1 << 3, "t"}, {1 << 4, "s"}, {1 << 5, "d"}, {1 << 6, "f"}, {1 << 7, "n"}, {1 << 31, "r"},
}

// FlowHashPorts is what the hash of UDP over IPv4 takes in when flows of one host spread over all queues: both addresses and both ports.
const FlowHashPorts = "sdfn"

// flowHashOf asks what is hashed of UDP over IPv4 (ETHTOOL_GRXFH). For this command the kernel looks at the first 16 bytes of the structure only.
func flowHashOf(name string) (string, error) {
	request := rxnfc{command: unix.ETHTOOL_GRXFH, flowType: flowUDPv4}
	if err := ask(name, &request); err != nil {
		return "", err
	}
	return hashLetters(request.data), nil
}

func hashLetters(fields uint64) string {
	var text strings.Builder
	for _, field := range hashFields {
		if fields&field.bit != 0 {
			text.WriteString(field.letter)
		}
	}
	if text.Len() == 0 {
		return "nothing"
	}
	return text.String()
}

// bytesOf looks at words as the bytes that the kernel wrote.
func bytesOf(words []uint32) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4*len(words))
}
