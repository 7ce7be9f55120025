//go:build linux

package nic

import (
	"golang.org/x/sys/unix"
)

// Driver says what runs an interface.
type Driver struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"` // the kernel's release, for most
	Firmware string `json:"firmware,omitempty"`
	Bus      string `json:"bus,omitempty"` // address of the device, like 0000:3b:00.0; empty for a virtual one
}

// driverOf asks by ETHTOOL_GDRVINFO.
func driverOf(name string) (*Driver, error) {
	info := unix.EthtoolDrvinfo{Cmd: unix.ETHTOOL_GDRVINFO}
	if err := ask(name, &info); err != nil {
		return nil, err
	}
	text := func(field *[32]byte) string {
		// Some drivers write N/A where they have nothing to say.
		if s := unix.ByteSliceToString(field[:]); s != "N/A" {
			return s
		}
		return ""
	}
	return &Driver{text(&info.Driver), text(&info.Version), text(&info.Fw_version), text(&info.Bus_info)}, nil
}

// Rings are the lengths of the descriptor rings of each queue.
type Rings struct {
	Rx    uint32 `json:"rx_size"`
	RxMax uint32 `json:"rx_size_max"`
	Tx    uint32 `json:"tx_size"`
	TxMax uint32 `json:"tx_size_max"`
}

// ringParam is struct ethtool_ringparam of include/uapi/linux/ethtool.h; mini and jumbo rings, which hardly any driver has, are left out.
type ringParam struct {
	command uint32
	rxMax   uint32
	_       [2]uint32
	txMax   uint32
	rxNow   uint32
	_       [2]uint32
	txNow   uint32
}

// ringsOf asks by ETHTOOL_GRINGPARAM.
func ringsOf(name string) (*Rings, error) {
	r := ringParam{command: unix.ETHTOOL_GRINGPARAM}
	if err := ask(name, &r); err != nil {
		return nil, err
	}
	return &Rings{Rx: r.rxNow, RxMax: r.rxMax, Tx: r.txNow, TxMax: r.txMax}, nil
}

// Coalescing says how long the NIC holds an interrupt back, so that several packets share it.
type Coalescing struct {
	AdaptiveRx bool   `json:"adaptive_rx"` // the driver chooses the time by the load
	RxUsecs    uint32 `json:"rx_us"`
	RxFrames   uint32 `json:"rx_frame_count"`
	AdaptiveTx bool   `json:"adaptive_tx"`
	TxUsecs    uint32 `json:"tx_us"`
	TxFrames   uint32 `json:"tx_frame_count"`
}

// coalesce is struct ethtool_coalesce of include/uapi/linux/ethtool.h; what holds while an interrupt is served, and at low and high rates, is left out.
type coalesce struct {
	command                uint32
	rxUsecs, rxFrames      uint32
	_                      [2]uint32
	txUsecs, txFrames      uint32
	_                      [3]uint32
	adaptiveRx, adaptiveTx uint32
	_                      [11]uint32
}

// coalescingOf asks by ETHTOOL_GCOALESCE.
func coalescingOf(name string) (*Coalescing, error) {
	c := coalesce{command: unix.ETHTOOL_GCOALESCE}
	if err := ask(name, &c); err != nil {
		return nil, err
	}
	return &Coalescing{
		AdaptiveRx: c.adaptiveRx != 0, RxUsecs: c.rxUsecs, RxFrames: c.rxFrames,
		AdaptiveTx: c.adaptiveTx != 0, TxUsecs: c.txUsecs, TxFrames: c.txFrames,
	}, nil
}
