//go:build linux && !portable

package main

import (
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	"github.com/stillwater-rpc/stillwater/hw/nic"
)

func TestNICStatus(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	runAt(t, pair.A.Do, "nic", "status", "veth0").check(t, exitOK, "veth0, index ", "up, MTU 1500", "driver            veth", "2 rx of at most 2",
		"tx-checksum-ip-generic off", "driver has no ")
	r := runAt(t, pair.A.Do, "nic", "status", "veth0", "-o", "json")
	r.check(t, exitOK)
	var s struct {
		Schema string
		nic.Status
	}
	r.decode(t, &s)
	if s.Schema != schemaNIC || s.Interface != "veth0" || s.Index != pair.A.Index || s.Driver.Name != "veth" || s.Queues.Rx != 2 {
		t.Errorf("%+v", s)
	}
}

// TestNICText prints an interface that has everything, which no test machine has.
func TestNICText(t *testing.T) {
	irq, node, rules := uint32(131), 1, 4
	text := nicText(&nic.Status{
		Interface: "eth1", Index: 3, MTUBytes: 1500, Up: true, Carrier: true,
		Driver: &nic.Driver{Name: "mlx5_core", Version: "6.8.0", Firmware: "16.35.3006", Bus: "0000:3b:00.0"},
		Queues: &nic.Queues{Rx: 4, RxMax: 32, Tx: 4, TxMax: 32}, Rings: &nic.Rings{Rx: 1024, RxMax: 8192, Tx: 1024, TxMax: 8192},
		RSS: &nic.RSS{Function: "toeplitz", KeyBytes: 40, TableSize: 128, Entries: []uint32{32, 32, 32, 32}}, FlowHash: "sdfn", RuleCount: &rules,
		Coalescing: &nic.Coalescing{AdaptiveRx: true, RxUsecs: 8, RxFrames: 128}, Offloads: map[string]nic.Offload{nic.OffloadLRO: {Changeable: true}},
		XDP:   &nic.XDP{Features: []string{"basic", "xsk-zerocopy"}, Metadata: []string{"timestamp"}},
		NAPIs: []nic.NAPI{{ID: 9, IRQ: &irq, RxQueues: []uint32{0}, TxQueues: []uint32{0}}}, NUMANode: &node, LocalCPUs: "8-15",
		Interrupts: []nic.Interrupt{{IRQ: irq, Action: "mlx5_comp0@pci:0000:3b:00.0", CPUs: "9"}}, Unknown: []string{"x"},
	})
	for _, want := range []string{
		"interface         eth1, index 3, up, MTU 1500", "driver            mlx5_core, 6.8.0, firmware 16.35.3006, at 0000:3b:00.0",
		"NUMA node         1, CPUs 8-15", "queues            4 rx of at most 32, 4 tx of at most 32", "rings             rx 1024 of at most 8192",
		"RSS               toeplitz, key of 40 bytes, table of 128 entries, by queue [32 32 32 32]", "steering rules    4",
		"coalescing        rx 8 us, 128 frames, adaptive on", "offload           rx-lro off", "XDP               basic xsk-zerocopy; metadata: timestamp",
		"NAPI              9: rx queues [0], tx queues [0], interrupt 131", "interrupt         131 (mlx5_comp0@pci:0000:3b:00.0) on CPUs 9", "unknown           x",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "driver has no") {
		t.Errorf("the driver has all:\n%s", text)
	}
}

// TestNICSteer asks for rules on veth, which has none: each way says so, with a code of its own, and the dry run has its plan all the same.
func TestNICSteer(t *testing.T) {
	pair := labtest.NewPair(t, lab.PairConfig{RxQueueCount: 2, TxQueueCount: 2})
	for _, more := range [][]string{{}, {"--unset"}, {"--unset", "--dry-run"}} {
		runAt(t, pair.A.Do, append([]string{"nic", "steer", "veth0", "--port", "7700"}, more...)...).check(t, exitCheck,
			"operation not supported", "every queue", "ethtool -L veth0 combined 1")
	}
	plan := []string{"nic", "steer", "veth0", "--port", "7700", "--queues", "2", "--dry-run"}
	runAt(t, pair.A.Do, plan...).check(t, exitOK, "port 7701 to queue 1: would be set", "ethtool -N veth0 flow-type udp4 dst-port 7701 action 1", "would be refused")
	runAt(t, pair.A.Do, append(plan, "--strict")...).check(t, exitWarning)
	r := runAt(t, pair.A.Do, append(plan, "-o", "json")...)
	r.check(t, exitOK)
	var d struct {
		Schema string
		steerData
	}
	r.decode(t, &d)
	if d.Schema != schemaSteer || !d.DryRun || len(d.Rules) != 2 || d.Rules[1].Port != 7701 || d.Rules[1].Queue != 1 || d.Rules[1].Change != "set" || d.Rules[1].Location != nil {
		t.Errorf("%+v", d)
	}
	runAt(t, pair.A.Do, "nic", "steer", "veth0", "--port", "7700", "--queue", "1", "--queues", "2").check(t, exitCheck, "queue 2", "ethtool -L veth0 combined 3")
	asNobody(t, pair.A, "nic", "steer", "veth0", "--port", "7700").check(t, exitCheck, "operation not supported")
}

// TestSteerBounds takes the last port and no more, and makes one rule for each.
func TestSteerBounds(t *testing.T) {
	rules, err := (&steerFlags{port: 65534, queue: 3, queues: 2}).rules()
	if err != nil || len(rules) != 2 || rules[1] != (nic.Rule{Port: 65535, Queue: 4}) {
		t.Errorf("%v, %v", rules, err)
	}
	location := uint32(5)
	d := (&steerFlags{}).data("eth1", []nic.Step{{Rule: rules[0], Change: nic.ChangeKept, Location: location}, {Rule: rules[1], Change: nic.ChangeAbsent}})
	if *d.Rules[0].Location != location || d.Rules[1].Location != nil {
		t.Errorf("%+v", d)
	}
	if want := "eth1: port 65534 to queue 3: kept\neth1: port 65535 to queue 4: absent\n"; d.text() != want {
		t.Errorf("%q, want %q", d.text(), want)
	}
}
