//go:build linux

package nic

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the fields of struct ethtool_rxnfc stand, as a C compiler for a 64-bit machine lays out include/uapi/linux/ethtool.h. The fake NIC below reads
// and writes by these alone, so that it would notice a structure of ours that is not the kernel's.
const (
	atFlowType    = 4
	atData        = 8
	atSpec        = 16
	atPort        = 30
	atPortMask    = 102
	atMaskExt     = 144
	atCookie      = 168
	atLocation    = 176
	atCount       = 184
	atLocations   = 188
	rxnfcSize     = 192
	specSize      = 168
	flowExtBit    = 0x80000000 // FLOW_EXT
	channelsCount = 8          // combined_count, the ninth word of struct ethtool_channels
)

// fakeNIC is a driver with a table of rules.
type fakeNIC struct {
	queues  uint32
	size    uint32            // of the table
	chooses bool              // RX_CLS_LOC_SPECIAL
	rules   map[uint32][]byte // struct ethtool_rx_flow_spec, by location
	refuse  map[uint32]error  // by command
	allowed int               // insertions before it refuses; negative = any number
	changes int
}

func newFakeNIC() *fakeNIC {
	return &fakeNIC{queues: 4, size: 8, rules: map[uint32][]byte{}, allowed: -1}
}

func (f *fakeNIC) call(_ string, data unsafe.Pointer) error {
	command := *(*uint32)(data)
	if err := f.refuse[command]; err != nil {
		return err
	}
	order := binary.NativeEndian
	if command == unix.ETHTOOL_GCHANNELS {
		order.PutUint32(unsafe.Slice((*byte)(data), 36)[4*channelsCount:], f.queues)
		return nil
	}
	request := unsafe.Slice((*byte)(data), rxnfcSize)
	location := order.Uint32(request[atLocation:])
	switch command {
	case unix.ETHTOOL_GRXCLSRLCNT:
		order.PutUint32(request[atCount:], uint32(len(f.rules)))
		if f.chooses {
			order.PutUint64(request[atData:], uint64(f.size)|locationSpecial)
		}
	case unix.ETHTOOL_GRXCLSRLALL:
		order.PutUint64(request[atData:], uint64(f.size))
		list := unsafe.Slice((*byte)(data), atLocations+4*int(order.Uint32(request[atCount:])))[atLocations:]
		for i, location := range slices.Sorted(maps.Keys(f.rules)) {
			order.PutUint32(list[4*i:], location)
		}
	case unix.ETHTOOL_GRXCLSRULE:
		copy(request[atSpec:], f.rules[location])
	case unix.ETHTOOL_SRXCLSRLINS:
		return f.insert(request, location)
	case unix.ETHTOOL_SRXCLSRLDEL:
		if f.rules[location] == nil {
			return unix.ENOENT
		}
		f.changes++
		delete(f.rules, location)
	default:
		return unix.EOPNOTSUPP
	}
	return nil
}

func (f *fakeNIC) insert(request []byte, location uint32) error {
	if f.allowed == 0 {
		return unix.ENOSPC
	}
	f.allowed--
	if location == locationAny {
		if !f.chooses {
			return unix.EINVAL
		}
		for location = 0; f.rules[location] != nil; location++ {
		}
		binary.NativeEndian.PutUint32(request[atLocation:], location)
	}
	if location >= f.size {
		return unix.EINVAL
	}
	f.changes++
	f.rules[location] = slices.Clone(request[atSpec : atSpec+specSize])
	return nil
}

// foreign puts a rule of somebody else there: ours, with bytes changed.
func (f *fakeNIC) foreign(location uint32, r Rule, change func(request []byte)) {
	request := make([]byte, rxnfcSize)
	spec := r.spec(location)
	copy(request[atSpec:], unsafe.Slice((*byte)(unsafe.Pointer(&spec)), specSize))
	change(request)
	f.rules[location] = request[atSpec : atSpec+specSize]
}

func TestRuleBytes(t *testing.T) {
	request := rxnfc{command: unix.ETHTOOL_SRXCLSRLINS, spec: Rule{Port: 7700, Queue: 3}.spec(5)}
	if size := unsafe.Sizeof(request); size != rxnfcSize {
		t.Fatalf("struct ethtool_rxnfc has %d bytes, want %d", size, rxnfcSize)
	}
	want := make([]byte, rxnfcSize)
	binary.NativeEndian.PutUint32(want, 0x32)         // ETHTOOL_SRXCLSRLINS
	binary.NativeEndian.PutUint32(want[atSpec:], 2)   // UDP_V4_FLOW
	copy(want[atPort:], []byte{0x1e, 0x14})           // 7700, big endian
	copy(want[atPortMask:], []byte{0xff, 0xff})       // all of it
	binary.NativeEndian.PutUint64(want[atCookie:], 3) // the queue
	binary.NativeEndian.PutUint32(want[atLocation:], 5)
	if got := unsafe.Slice((*byte)(unsafe.Pointer(&request)), rxnfcSize); !slices.Equal(got, want) {
		t.Errorf("the request is\n% x, want\n% x", got, want)
	}
	if got, want := (Rule{7700, 3}).Command("eth1"), "ethtool -N eth1 flow-type udp4 dst-port 7700 action 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLayouts compares our structures with those of include/uapi/linux/ethtool.h.
func TestLayouts(t *testing.T) {
	var r ringParam
	var c coalesce
	for name, test := range map[string][2]uintptr{
		"struct ethtool_ringparam":          {unsafe.Sizeof(r), 36},
		"tx_pending":                        {unsafe.Offsetof(r.txNow), 32},
		"rx_pending":                        {unsafe.Offsetof(r.rxNow), 20},
		"struct ethtool_coalesce":           {unsafe.Sizeof(c), 92},
		"use_adaptive_rx_coalesce":          {unsafe.Offsetof(c.adaptiveRx), 40},
		"tx_coalesce_usecs":                 {unsafe.Offsetof(c.txUsecs), 20},
		"struct ethtool_channels":           {unsafe.Sizeof(Channels{}), 36},
		"struct ethtool_rx_flow_spec":       {unsafe.Sizeof(flowSpec{}), specSize},
		"struct ethtool_rxfh without table": {4 * rxfhWords, 24},
	} {
		if test[0] != test[1] {
			t.Errorf("%s: %d, want %d", name, test[0], test[1])
		}
	}
}

// TestExact recognises what compares a destination port and nothing else, whatever stands in the fields that are not compared.
func TestExact(t *testing.T) {
	for name, test := range map[string]struct {
		change func(request []byte)
		exact  bool
	}{
		"ours":                     {func([]byte) {}, true},
		"garbage without a mask":   {func(b []byte) { b[20], b[35] = 10, 9 }, true},
		"an address too":           {func(b []byte) { b[92] = 0xff }, false},
		"a source port too":        {func(b []byte) { b[101] = 1 }, false},
		"half of the port":         {func(b []byte) { b[atPortMask+1] = 0 }, false},
		"TCP":                      {func(b []byte) { b[atSpec] = 1 }, false},
		"a VLAN too":               {func(b []byte) { binary.NativeEndian.PutUint32(b[atSpec:], flowExtBit|2); b[atMaskExt+11] = 1 }, false},
		"an extension without use": {func(b []byte) { binary.NativeEndian.PutUint32(b[atSpec:], flowExtBit|2) }, false},
		"a drop":                   {func(b []byte) { binary.NativeEndian.PutUint64(b[atCookie:], ^uint64(0)) }, false},
		"a virtual function":       {func(b []byte) { b[atCookie+4] = 1 }, false},
	} {
		f := newFakeNIC()
		f.foreign(2, Rule{7700, 1}, test.change)
		table, err := readTable(f.call, "eth1")
		if err != nil || len(table.rules) != 1 {
			t.Fatalf("%s: %v, %v", name, table, err)
		}
		if got := table.rules[0]; got.Exact != test.exact || got.Location != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

var fourPorts = []Rule{{7700, 0}, {7701, 1}, {7702, 2}, {7703, 3}}

// TestSteerAndUnsteer sets rules, finds them there the second time, and takes away these alone.
func TestSteerAndUnsteer(t *testing.T) {
	for _, chooses := range []bool{false, true} {
		f := newFakeNIC()
		f.chooses = chooses
		f.foreign(6, Rule{7700, 2}, func(b []byte) { b[92] = 0xff })
		for _, want := range []Change{ChangeSet, ChangeKept} {
			steps, err := steer(f.call, "eth1", fourPorts)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range steps {
				if s.Change != want || s.Rule != fourPorts[i] || f.rules[s.Location] == nil || (s.Command != "") != (want == ChangeSet) {
					t.Errorf("driver chooses %v: %+v, want %s", chooses, s, want)
				}
			}
		}
		if len(f.rules) != 5 || f.changes != 4 {
			t.Errorf("%d rules after %d changes, want 5 after 4", len(f.rules), f.changes)
		}
		steps, err := unsteer(f.call, "eth1", append(slices.Clone(fourPorts), Rule{7704, 0}, Rule{7700, 2}))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range steps {
			if want := map[bool]Change{true: ChangeRemoved, false: ChangeAbsent}[i < 4]; s.Change != want {
				t.Errorf("%+v, want %s", s, want)
			}
		}
		if len(f.rules) != 1 || f.rules[6] == nil {
			t.Errorf("%d rules are left, want that of somebody else", len(f.rules))
		}
	}
}

// TestSteerTakesBack fails at the third of four rules, and leaves none.
func TestSteerTakesBack(t *testing.T) {
	f := newFakeNIC()
	f.allowed = 2
	steps, err := steer(f.call, "eth1", fourPorts)
	if !errors.Is(err, ErrRulesFull) || !errors.Is(err, unix.ENOSPC) || steps != nil {
		t.Errorf("%v, %v", steps, err)
	}
	if len(f.rules) != 0 || f.changes != 4 {
		t.Errorf("%d rules after %d changes, want none after 4", len(f.rules), f.changes)
	}
}

// TestTableFull fills the table to its last place, and asks for one more.
func TestTableFull(t *testing.T) {
	f := newFakeNIC()
	f.size = 3
	if _, err := steer(f.call, "eth1", fourPorts[:3]); err != nil || len(f.rules) != 3 {
		t.Fatalf("%d rules, %v", len(f.rules), err)
	}
	if _, err := steer(f.call, "eth1", fourPorts[3:]); !errors.Is(err, ErrRulesFull) || len(f.rules) != 3 {
		t.Errorf("%d rules, %v", len(f.rules), err)
	}
}

func TestSteerRefuses(t *testing.T) {
	elsewhere := func(f *fakeNIC) { f.foreign(1, Rule{7701, 3}, func([]byte) {}) }
	for name, test := range map[string]struct {
		prepare func(*fakeNIC)
		rules   []Rule
		is      error
		says    string
	}{
		"a port that goes elsewhere": {elsewhere, fourPorts, ErrRuleConflict, "ethtool -N eth1 delete 1"},
		"a queue too many":           {func(*fakeNIC) {}, []Rule{{7700, 4}}, ErrNoQueue, "ethtool -L eth1 combined 5"},
		"no rules at all": {
			func(f *fakeNIC) { f.refuse = map[uint32]error{unix.ETHTOOL_GRXCLSRLCNT: unix.EOPNOTSUPP} },
			fourPorts, ErrNoRules, "every queue",
		},
		"no right": {
			func(f *fakeNIC) { f.refuse = map[uint32]error{unix.ETHTOOL_SRXCLSRLINS: unix.EPERM} },
			fourPorts, unix.EPERM, "CAP_NET_ADMIN",
		},
		"a rule that it does not take": {
			func(f *fakeNIC) { f.refuse = map[uint32]error{unix.ETHTOOL_SRXCLSRLINS: unix.EINVAL} },
			fourPorts, unix.EINVAL, "ethtool -n eth1",
		},
	} {
		f := newFakeNIC()
		test.prepare(f)
		before := len(f.rules)
		_, err := steer(f.call, "eth1", test.rules)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
		if len(f.rules) != before || f.changes != 0 {
			t.Errorf("%s: %d rules after %d changes", name, len(f.rules), f.changes)
		}
	}
}

// TestRuleCountBound reads as many rules as are believed, and not one more.
func TestRuleCountBound(t *testing.T) {
	answer := func(count uint32) caller {
		return func(_ string, data unsafe.Pointer) error {
			request := (*rxnfc)(data)
			if request.command == unix.ETHTOOL_GRXCLSRLCNT {
				request.count = count
			} else if request.command == unix.ETHTOOL_GRXCLSRLALL {
				request.count = 0 // they were all removed meanwhile
			}
			return nil
		}
	}
	if table, err := readTable(answer(ruleCountMax), "eth1"); err != nil || len(table.rules) != 0 {
		t.Errorf("%v, %v", table, err)
	}
	if _, err := readTable(answer(ruleCountMax+1), "eth1"); err == nil {
		t.Error("a driver with too many rules was believed")
	}
}
