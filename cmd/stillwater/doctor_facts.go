//go:build linux && !portable

package main

import (
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stillwater-rpc/stillwater/bpf"
	"github.com/stillwater-rpc/stillwater/hw/doctor"
	"github.com/stillwater-rpc/stillwater/hw/nic"
	"github.com/stillwater-rpc/stillwater/xsk"
)

// packetSizeMax is the longest packet that a frame holds behind XDP's headroom and the arrival stamp.
func packetSizeMax(cfg xsk.Config) int {
	const stampSize = 8
	return cfg.FrameSizeBytes - unix.XDP_PACKET_HEADROOM - stampSize
}

// liveNIC asks the driver and the XDP hook.
func liveNIC(name string, root fs.FS) (*doctor.NIC, error) {
	s, err := nic.Read(name, root)
	if err != nil {
		return nil, err
	}
	n := judged(s)
	status, err := bpf.Inspect(name)
	switch {
	case err != nil || status.Attached && status.Name == "": // no rights to see whose it is, or a kernel that does not tell
	case status.Attached:
		n.ProgramKnown, n.Program = true, programOf(status)
	default:
		n.ProgramKnown = true
	}
	return n, nil
}

func recordedNIC(name string, root fs.FS) (*doctor.NIC, error) {
	s, err := nic.Recorded(name, root)
	if err != nil {
		return nil, err
	}
	return judged(s), nil
}

// judged is what doctor looks at of all that is known.
func judged(s *nic.Status) *doctor.NIC {
	up := s.Up
	n := &doctor.NIC{
		Interface: s.Interface, Up: &up, MTUBytes: s.MTUBytes, FlowHash: s.FlowHash, NUMANode: s.NUMANode, LocalCPUs: s.LocalCPUs,
	}
	if s.Driver != nil {
		n.Driver = s.Driver.Name
	}
	if s.Queues != nil {
		n.QueueCount = s.Queues.Rx
	}
	if s.XDP != nil {
		n.Features, n.Metadata = s.XDP.Features, s.XDP.Metadata
	}
	if s.Offloads != nil {
		n.Offloads = make(map[string]doctor.Offload, len(s.Offloads))
		for name, offload := range s.Offloads {
			n.Offloads[name] = doctor.Offload(offload)
		}
	}
	if c := s.Coalescing; c != nil {
		n.AdaptiveRx, n.RxUsecs = &c.AdaptiveRx, c.RxUsecs
	}
	if has := s.RuleCount != nil; has || slices.Contains(s.Unsupported, "rule_count") {
		n.HasRules = &has
		if has {
			n.RuleCount = *s.RuleCount
		}
	}
	return n
}

// programOf says whose program it is, and how it goes away.
func programOf(s *bpf.Status) *doctor.Program {
	p := &doctor.Program{Ours: s.Ours, Mode: s.Mode.String(), Text: programText(asStatus(s)), Cure: "ip link set dev " + s.Interface + " xdp off # if its owner agrees"}
	if s.LinkID != 0 {
		p.Text += ", " + holdersText(asStatus(s))
		p.Cure = "stillwater xdp status " + s.Interface + " # stop the holder that it names"
	}
	return p
}
