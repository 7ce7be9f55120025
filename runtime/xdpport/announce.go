//go:build linux

package xdpport

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/stillwater-rpc/stillwater/wire"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
)

// announce tells everybody on the link which MAC our addresses have. A peer that sent to us while the interface was away has asked for it in vain, and
// its kernel waits for a second before it asks again; or it knows the MAC of the interface that was there before.
func (k *keeper) announce() error {
	link, err := netlink.LinkByName(k.device.name)
	if err != nil {
		return fmt.Errorf("announcing our addresses: %w", err)
	}
	hardware := link.Attrs().HardwareAddr
	if len(hardware) != len(wire.MAC{}) {
		return nil // a link without such addresses
	}
	k.own(func() { k.ports[0].announce(wire.MAC(hardware)) })
	return nil
}

// announce sends an announcement for each of our addresses. One that is lost is repaired as it was without it.
func (p *Port) announce(mac wire.MAC) {
	for _, a := range p.local.all() {
		b, ok := p.Lend()
		if !ok {
			return
		}
		addr := frame.Addr(b.Token)
		room := p.umem.Bytes(frame.Desc{Addr: addr, Len: wire.AnnounceBytes})
		desc := frame.Desc{Addr: addr, Len: uint32(wire.Announce(room, mac, a.IP))}
		if q := p.queues.to(&a); q == nil {
			p.umem.Drop(addr)
		} else if q.Submit(desc) { // what is refused is dropped with that
			p.submitted = true
		}
	}
	p.Kick()
}
