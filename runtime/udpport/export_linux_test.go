//go:build linux && !portable

package udpport

import "github.com/stillwater-rpc/stillwater/hw/clock"

// Bound is the clamp of arrivals.
func Bound(p *Port, emptyAt, arrival, now clock.Time) clock.Time {
	p.in.emptyAt = emptyAt
	return p.in.bound(arrival, now)
}

// ReceiveAllocated is what the packets that wait in the socket occupy in the kernel, in bytes.
func ReceiveAllocated(p *Port) int { return int(p.meminfo()[meminfoReceiveAllocated]) }
