//go:build linux

package nic

import (
	"fmt"
	"io/fs"
	"net"
	"path"
	"slices"
	"strings"
)

// Status is all that can be read about an interface. A part that is absent stands in Unsupported, if its driver has none, or in Unknown, if it could
// not be read, by its name in JSON.
type Status struct {
	Interface       string `json:"interface"`
	Index           int    `json:"index"`
	HardwareAddress string `json:"hardware_address,omitempty"`
	MTUBytes        int    `json:"mtu_bytes"`
	Up              bool   `json:"up"`      // as its administrator wants it
	Carrier         bool   `json:"carrier"` // as the link is

	Driver     *Driver            `json:"driver,omitempty"`
	Queues     *Queues            `json:"queues,omitempty"`
	RSS        *RSS               `json:"rss,omitempty"`
	FlowHash   string             `json:"rx_flow_hash_udp4,omitempty"` // the letters of `ethtool -N ... rx-flow-hash udp4`
	Rings      *Rings             `json:"rings,omitempty"`
	Coalescing *Coalescing        `json:"coalescing,omitempty"`
	Offloads   map[string]Offload `json:"offloads,omitempty"`   // by the kernel's name
	RuleCount  *int               `json:"rule_count,omitempty"` // steering rules, anyone's
	XDP        *XDP               `json:"xdp,omitempty"`
	NAPIs      []NAPI             `json:"napi,omitempty"`
	NUMANode   *int               `json:"numa_node,omitempty"`  // -1: the machine has but one, or does not say
	LocalCPUs  string             `json:"local_cpus,omitempty"` // those near the NIC
	Interrupts []Interrupt        `json:"interrupts,omitempty"`

	Unsupported []string `json:"unsupported"`
	Unknown     []string `json:"unknown"`
}

// Queues are the numbers of queues.
type Queues struct {
	Rx    int `json:"rx_count"`
	RxMax int `json:"rx_count_max"`
	Tx    int `json:"tx_count"`
	TxMax int `json:"tx_count_max"`
}

// Read reads an interface of the calling thread's network namespace; root is the host's file system. It changes nothing and needs no privilege. Only
// an interface that does not exist is an error.
func Read(name string, root fs.FS) (*Status, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("nic: find interface %s: %w", name, err)
	}
	s := &Status{
		Interface: name, Index: device.Index, HardwareAddress: device.HardwareAddr.String(), MTUBytes: device.MTU,
		Up: device.Flags&net.FlagUp != 0, Carrier: device.Flags&net.FlagRunning != 0,
	}
	s.askDriver()
	s.askNetdev()
	t := tree{root}
	s.readDevice(t, t.shows(s))
	s.sort()
	return s, nil
}

// note files a part away as unsupported or unknown, and reports whether it is there.
func (s *Status) note(part string, err error) bool {
	switch {
	case err == nil:
		return true
	case unsupported(err):
		s.Unsupported = append(s.Unsupported, part)
	default:
		s.Unknown = append(s.Unknown, part)
	}
	return false
}

func (s *Status) sort() {
	slices.Sort(s.Unsupported)
	slices.Sort(s.Unknown)
	s.Unsupported, s.Unknown = append([]string{}, s.Unsupported...), append([]string{}, s.Unknown...) // an empty list in JSON, not null
}

// take is note for a part of which the zero value is none.
func take[T any](s *Status, part string, value T, err error) (absent T) {
	if s.note(part, err) {
		return value
	}
	return absent
}

// askDriver asks by ethtool.
func (s *Status) askDriver() {
	driver, err := driverOf(s.Interface)
	s.Driver = take(s, "driver", driver, err)
	if channels, err := ChannelsOf(s.Interface); s.note("queues", err) {
		s.Queues = &Queues{Rx: channels.Receive(), RxMax: channels.ReceiveMax(), Tx: channels.transmit(), TxMax: channels.transmitMax()}
	}
	rss, err := rssOf(s.Interface)
	if err == nil && rss.TableSize == 0 && rss.KeyBytes == 0 {
		err = errNoRSS
	}
	s.RSS = take(s, "rss", rss, err)
	hash, err := flowHashOf(s.Interface)
	s.FlowHash = take(s, "rx_flow_hash_udp4", hash, err)
	rings, err := ringsOf(s.Interface)
	s.Rings = take(s, "rings", rings, err)
	coalescing, err := coalescingOf(s.Interface)
	s.Coalescing = take(s, "coalescing", coalescing, err)
	offloads, err := offloadsOf(s.Interface)
	s.Offloads = take(s, "offloads", offloads, err)
	if rules, err := Rules(s.Interface); s.note("rule_count", err) {
		count := len(rules)
		s.RuleCount = &count
	}
}

// askNetdev asks by netlink.
func (s *Status) askNetdev() {
	xdp, err := xdpOf(s.Index)
	s.XDP = take(s, "xdp", xdp, err)
	napis, err := napisOf(s.Index)
	s.NAPIs = take(s, "napi", napis, err)
}

// readDevice reads the device's directory in sysfs. A virtual interface has none.
func (s *Status) readDevice(t tree, trusted bool) {
	device := t.deviceDirectory(s, trusted)
	parts := []string{"numa_node", "local_cpus", "interrupts"}
	if device == "" {
		if s.Driver != nil && s.Driver.Bus == "" || slices.Contains(s.Unsupported, "driver") {
			s.Unsupported = append(s.Unsupported, parts...)
		} else {
			s.Unknown = append(s.Unknown, parts...)
		}
		return
	}
	if node, ok := t.number(path.Join(device, "numa_node")); ok {
		s.NUMANode = &node
	} else {
		s.Unknown = append(s.Unknown, "numa_node")
	}
	if s.LocalCPUs = t.line(path.Join(device, "local_cpulist")); s.LocalCPUs == "" {
		s.Unknown = append(s.Unknown, "local_cpus")
	}
	interrupts, ok := t.interrupts(device)
	if s.Interrupts = interrupts; !ok {
		s.Unknown = append(s.Unknown, "interrupts")
	}
}

// Recorded reads an interface from a recorded tree of sysfs and procfs alone. What only the driver could say is unknown.
func Recorded(name string, root fs.FS) (*Status, error) {
	t, class := tree{root}, classDirectory(name)
	if strings.ContainsRune(name, '/') || !t.exists(path.Join(class, "mtu")) {
		return nil, fmt.Errorf("nic: the recorded tree has no interface %s", name)
	}
	s := &Status{
		Interface: name, HardwareAddress: t.line(path.Join(class, "address")),
		Unknown: []string{"rss", "rx_flow_hash_udp4", "rings", "coalescing", "offloads", "rule_count", "xdp", "napi"},
	}
	s.Index, _ = t.number(path.Join(class, "ifindex"))
	s.MTUBytes, _ = t.number(path.Join(class, "mtu"))
	state := t.line(path.Join(class, "operstate"))
	s.Carrier = state == "up" || state == "unknown" // a virtual one may not know
	s.Up = s.Carrier || state == "dormant" || state == "lowerlayerdown"
	s.recordedDriver(t, path.Join(class, "device", "uevent"))
	s.recordedQueues(t, path.Join(class, "queues"))
	s.readDevice(t, true)
	s.sort()
	return s, nil
}

func (s *Status) recordedDriver(t tree, uevent string) {
	if !t.exists(uevent) {
		s.Unknown = append(s.Unknown, "driver") // a virtual one: sysfs does not name its driver
		return
	}
	s.Driver = &Driver{}
	for text := range strings.Lines(t.line(uevent)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(text), "="); key {
		case "DRIVER":
			s.Driver.Name = value
		case "PCI_SLOT_NAME":
			s.Driver.Bus = value
		}
	}
}

func (s *Status) recordedQueues(t tree, directory string) {
	entries, err := fs.ReadDir(t, directory)
	if err != nil {
		s.Unknown = append(s.Unknown, "queues")
		return
	}
	q := &Queues{}
	for _, entry := range entries {
		switch kind, _, _ := strings.Cut(entry.Name(), "-"); kind {
		case "rx":
			q.Rx++
		case "tx":
			q.Tx++
		}
	}
	q.RxMax, q.TxMax = q.Rx, q.Tx
	s.Queues = q
}
