//go:build linux

package udpport

import "github.com/stillwater-rpc/stillwater/hw/clock"

// FD is the socket, for tests that set options or play the kernel.
func FD(p *Port) int { return p.fd }

// Bound is the clamp of arrivals.
func Bound(p *Port, emptyAt, arrival, now clock.Time) clock.Time {
	p.emptyAt = emptyAt
	return p.bound(arrival, now)
}

// ReceiveAllocated is what the packets that wait in the socket occupy in the kernel, in bytes.
func ReceiveAllocated(p *Port) int { return int(p.meminfo()[meminfoReceiveAllocated]) }
