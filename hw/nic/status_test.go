//go:build linux

package nic

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"
)

// TestSysfsOfAnother does not believe sysfs about an interface of the same name that is another one.
func TestSysfsOfAnother(t *testing.T) {
	root := fstest.MapFS{
		"sys/class/net/eth1/ifindex":          {Data: []byte("7\n")},
		"sys/class/net/eth1/address":          {Data: []byte("02:00:00:00:00:01\n")},
		"sys/class/net/eth1/device/numa_node": {Data: []byte("1\n")},
	}
	for _, test := range []struct {
		index   int
		address string
		want    bool
	}{{7, "02:00:00:00:00:01", true}, {8, "02:00:00:00:00:01", false}, {7, "02:00:00:00:00:02", false}} {
		s := &Status{Interface: "eth1", Index: test.index, HardwareAddress: test.address, Driver: &Driver{Name: "x", Bus: "usb-1"}}
		s.readDevice(tree{root}, tree{root}.shows(s))
		if (s.NUMANode != nil) != test.want || slices.Contains(s.Unknown, "numa_node") == test.want {
			t.Errorf("%+v: node %v, unknown %v", test, s.NUMANode, s.Unknown)
		}
	}
}

var recordedTree = fstest.MapFS{
	"sys/class/net/eth1/mtu":                  {Data: []byte("9000\n")},
	"sys/class/net/eth1/ifindex":              {Data: []byte("3\n")},
	"sys/class/net/eth1/operstate":            {Data: []byte("up\n")},
	"sys/class/net/eth1/device/uevent":        {Data: []byte("DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_SLOT_NAME=0000:3b:00.0\n")},
	"sys/class/net/eth1/device/numa_node":     {Data: []byte("1\n")},
	"sys/class/net/eth1/device/local_cpulist": {Data: []byte("8-15\n")},
	"sys/class/net/eth1/device/msi_irqs/131":  {Data: []byte("msix\n")},
	"sys/class/net/eth1/device/msi_irqs/99":   {Data: []byte("msix\n")},
	"sys/class/net/eth1/queues/rx-0/rps_cpus": {Data: []byte("0\n")},
	"sys/class/net/eth1/queues/rx-1/rps_cpus": {Data: []byte("0\n")},
	"sys/class/net/eth1/queues/tx-0/xps_cpus": {Data: []byte("0\n")},
	"proc/irq/131/smp_affinity_list":          {Data: []byte("9\n")},
	"proc/interrupts": {Data: []byte("            CPU0       CPU1\n" +
		"  99:          1          0  IR-PCI-MSIX-0000:3b:00.0    0-edge      mlx5_async0@pci:0000:3b:00.0\n" +
		" 131:          0     123456  IR-PCI-MSIX-0000:3b:00.0    1-edge      mlx5_comp0@pci:0000:3b:00.0\n" +
		" NMI:          5          6  Non-maskable interrupts\n" + "  77: 1 2\n")},
	"sys/class/net/down0/mtu":       {Data: []byte("1500\n")},
	"sys/class/net/down0/operstate": {Data: []byte("down\n")},
}

func TestRecorded(t *testing.T) {
	s, err := Recorded("eth1", recordedTree)
	if err != nil {
		t.Fatal(err)
	}
	node := 1
	want := &Status{
		Interface: "eth1", Index: 3, MTUBytes: 9000, Up: true, Carrier: true, NUMANode: &node, LocalCPUs: "8-15",
		Driver: &Driver{Name: "mlx5_core", Bus: "0000:3b:00.0"}, Queues: &Queues{Rx: 2, RxMax: 2, Tx: 1, TxMax: 1},
		Interrupts:  []Interrupt{{IRQ: 99, Action: "mlx5_async0@pci:0000:3b:00.0"}, {131, "mlx5_comp0@pci:0000:3b:00.0", "9"}},
		Unsupported: []string{},
		Unknown:     []string{"coalescing", "napi", "offloads", "rings", "rss", "rule_count", "rx_flow_hash_udp4", "xdp"},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, want\n%+v", s, want)
	}
	s, err = Recorded("down0", recordedTree)
	if err != nil || s.Up || s.Carrier || s.Driver != nil || !slices.Contains(s.Unknown, "driver") || !slices.Contains(s.Unknown, "queues") {
		t.Errorf("%+v, %v", s, err)
	}
	for _, name := range []string{"nosuch0", "", "..", "../net/eth1"} {
		if _, err := Recorded(name, recordedTree); err == nil {
			t.Errorf("%q was found", name)
		}
	}
}

// TestFeatureState reads the second block of two: available, requested, active, never changed.
func TestFeatureState(t *testing.T) {
	blocks := []uint32{0, 0, 0, 0, 0b1101, 0, 0b1010, 0b1000}
	for i, want := range []Offload{{false, true}, {true, false}, {false, true}, {true, false}} {
		if got := featureState(blocks, 32+i); got != want {
			t.Errorf("bit %d: %v, want %v", i, got, want)
		}
	}
	if got := splitNames(append(append([]byte("rx-lro"), make([]byte, 26)...), []byte("rx-gro-hw")...)); !slices.Equal(got, []string{"rx-lro", "rx-gro-hw"}) {
		t.Errorf("%q", got)
	}
	if text := (Offload{On: true}).String() + ", " + (Offload{Changeable: true}).String(); text != "on [fixed], off" {
		t.Error(text)
	}
}

func TestRSS(t *testing.T) {
	answer := []uint32{0x46, 0, 6, 40, 0, 0, 0, 1, 0, 3, 1, 0xffffffff}
	copy(bytesOf(answer[4:5]), []byte{2})
	got := rssFrom(answer, 6, 40)
	if want := (&RSS{Function: "xor", KeyBytes: 40, TableSize: 6, Entries: []uint32{2, 2, 0, 1}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for fields, want := range map[uint64]string{0: "nothing", 0x30: "sd", 0xf0: FlowHashPorts, 1<<31 | 2: "mr"} {
		if got := hashLetters(fields); got != want {
			t.Errorf("%#x: %q, want %q", fields, got, want)
		}
	}
}

func TestNAPIs(t *testing.T) {
	word := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	napis := joinNAPIs(
		[]attributes{{napiID: word(9), napiIRQ: word(38), napiFlush: binary.NativeEndian.AppendUint64(nil, 256)}, {napiID: word(10), napiDefer: word(2)}},
		[]attributes{
			{queueID: word(0), queueType: word(0), queueNAPI: word(9)}, {queueID: word(4), queueType: word(1), queueNAPI: word(9)},
			{queueID: word(1), queueType: word(0), queueNAPI: word(10)}, {queueID: word(2), queueType: word(0)},
		})
	irq := uint32(38)
	want := []NAPI{
		{ID: 9, IRQ: &irq, RxQueues: []uint32{0}, TxQueues: []uint32{4}, FlushTimeout: 256},
		{ID: 10, RxQueues: []uint32{1}, TxQueues: []uint32{}, DeferHardIRQs: 2},
	}
	if !reflect.DeepEqual(napis, want) {
		t.Errorf("%+v, want %+v", napis, want)
	}
	if got := namesOf(0b1001|1<<40, xdpFeatureNames); !slices.Equal(got, []string{XDPBasic, XDPZeroCopy, "bit-40"}) {
		t.Errorf("%v", got)
	}
}
