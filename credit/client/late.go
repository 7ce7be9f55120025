package client

import "time"

// Late is by how much a client's estimates of a call's time at a server are short: so much that one call in fifty is late. It grows with each call that was sent
// and had no answer at all by its deadline (a refusal is one), and falls a fiftieth of that with each that had (Robbins and Monro, 1951): what the queues and handlers of a server
// say of themselves is not all that a call meets there. The zero value says that they are right.
type Late struct{ by time.Duration }

// The steps. With 100 answers for a late call instead of 50, servers with a queue for each CPU give 824k/s at twice their capacity instead of 820k/s, and 100,000 clients that
// wake up by fifties get 94.9 % of theirs instead of 95.7: there the server is idle at times, and whoever gives up would have been served. With 40 the former give 818k/s.
const (
	lateSteps = 32 // late calls until it is the target
	lateShare = 50 // answers for one of them
)

// Missed is a call that was late. The delay that the server aims at is the measure of a step, and the most that it comes to.
func (l *Late) Missed(target time.Duration) { l.by = min(l.by+target/lateSteps, target) }

// Met is a call that was answered in time.
func (l *Late) Met(target time.Duration) { l.by = max(l.by-max(target/(lateSteps*lateShare), 1), 0) }

// Takes is the part of an invited share of calls that a client takes when so much is not told: half of the share at the least. A server that invites until its
// CPUs are all busy, and has a queue for each, answers many too late; most calls there go by invitation and do not wait, so nothing else would keep them back. Where
// all are invited, little stands in the server's queue, and what is late is so for another reason, as handlers that take long now and then: it takes all.
//
// In the simulator, goodput at twice the capacity: with a queue for each CPU and 10 us of work 820k/s instead of 815k/s with exponential service, and 819k/s instead of
// 795k/s with constant; with one queue, exponential 100 us and an SLO of 300 us, of which a service alone takes more in one of twenty calls, 81.9k/s instead of 79.5k/s.
// Taking less where all are invited, too, gives 2.28M/s instead of 2.10M/s with memcached and a queue for each CPU, and 3 to 6 % less at nine tenths of the capacity where handlers alone are late.
func (l *Late) Takes(share, all uint8, target time.Duration) uint8 {
	if l.by <= 0 || target <= 0 || share <= 1 || share >= all {
		return share
	}
	whole := int64(target + l.by)
	return uint8((int64(share)*int64(target) + whole - 1) / whole) // rounded up: at many times the capacity the share is a few in 127
}

// By is the estimate.
func (l *Late) By() time.Duration { return l.by }
