package faultsim

import (
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/runtime/sim"
	"github.com/stillwater-rpc/stillwater/wire"
)

// types are the messages that may be dropped, by their names.
var types = func() map[string]wire.Type {
	m := make(map[string]wire.Type)
	for t := wire.TypeRequest; t <= wire.TypeGone; t++ {
		m[t.String()] = t
	}
	return m
}()

// forecast foresees the beginning and the end of each fault.
func (p *play) forecast() {
	for i := range p.Faults {
		f := &p.Faults[i]
		p.world.At(time.Duration(f.At), func() { p.begin(f) })
		p.world.At(time.Duration(f.At+f.For), func() { p.end(f) })
	}
}

// begin lets a fault begin. Faults of one kind may overlap: what they stop goes on when the last of them ends.
func (p *play) begin(f *Fault) {
	switch f.Kind {
	case CutTo, CutFrom:
		from, to := p.link(f)
		if p.cuts[f.link()]++; p.cuts[f.link()] == 1 {
			p.world.Cut(from, to)
		}
	case StallServer, StallClient:
		p.victim(f).Stall(time.Duration(f.For))
	case KillServer, KillClient:
		h := p.victim(f)
		if p.deaths[h]++; p.deaths[h] == 1 {
			h.Kill()
			if f.Kind == KillClient {
				p.pending[f.Host] = 0
			}
		}
	default:
		p.active = append(p.active, f)
		p.weather()
	}
}

// end ends it.
func (p *play) end(f *Fault) {
	switch f.Kind {
	case CutTo, CutFrom:
		from, to := p.link(f)
		if p.cuts[f.link()]--; p.cuts[f.link()] == 0 {
			p.world.Mend(from, to)
		}
	case StallServer, StallClient: // it ends by itself
	case KillServer, KillClient:
		h := p.victim(f)
		if p.deaths[h]--; p.deaths[h] == 0 {
			h.Restart()
		}
	default:
		p.active = slices.DeleteFunc(p.active, func(other *Fault) bool { return other == f })
		p.weather()
	}
}

// link names what a cut cuts.
func (f *Fault) link() Fault { return Fault{Kind: f.Kind, Host: f.Host} }

func (p *play) link(f *Fault) (from, to *sim.Host) {
	if f.Kind == CutTo {
		return p.hosts[f.Host], p.machine.Host
	}
	return p.machine.Host, p.hosts[f.Host]
}

func (p *play) victim(f *Fault) *sim.Host {
	if f.Kind == KillServer || f.Kind == StallServer {
		return p.machine.Host
	}
	return p.hosts[f.Host]
}

// weather makes the network what the present faults make of it; of several of one kind, the worst counts.
func (p *play) weather() {
	n := p.fair()
	var drops []dropper
	for _, f := range p.active {
		switch f.Kind {
		case Loss:
			n.Loss = max(n.Loss, f.Share)
		case Duplicate:
			n.Duplicate = max(n.Duplicate, f.Share)
		case Reorder:
			n.Reorder, n.ReorderBy = max(n.Reorder, f.Share), max(n.ReorderBy, time.Duration(f.By))
		case Corrupt:
			n.Corrupt = max(n.Corrupt, f.Share)
		case Drop:
			drops = append(drops, dropper{types[f.Message], f.Share, p})
		}
	}
	if len(drops) > 0 {
		n.Drop = func(_, _ wire.Addr, payload []byte) (lost bool) {
			for _, d := range drops {
				lost = lost || d.drops(payload)
			}
			return lost
		}
	}
	p.world.SetNetwork(n)
}

// fair is the network without a fault.
func (p *play) fair() sim.Network {
	return sim.Network{OneWay: time.Duration(p.RTT / 2), Jitter: time.Duration(p.Jitter)}
}

// dropper loses a share of the packets with one type of message.
type dropper struct {
	of    wire.Type
	share float64
	*play
}

func (d dropper) drops(payload []byte) bool {
	packet, err := wire.ParsePacket(payload)
	if err != nil {
		return false
	}
	for rest := packet.Messages; len(rest) > 0; {
		var m wire.Message
		if m, rest, err = wire.NextMessage(rest); err != nil {
			return false
		}
		if m.Type == d.of {
			if d.dice.Float64() >= d.share {
				return false
			}
			d.result.Dropped[m.Type.String()]++
			return true
		}
	}
	return false
}
