package client

import "time"

// Late is by how much a client's estimates of a call's time at a server are short: so much that one call in fifty is late. It grows with each call that was sent
// and had no answer at all by its deadline, and falls a fiftieth of that with each that had (Robbins and Monro, 1951): what the queues and handlers of a server
// say of themselves is not all that a call meets there. The zero value says that they are right.
type Late struct{ by time.Duration }

// The steps. With 100 answers for a late call, servers with a queue for each CPU give as much at twice their capacity (808k/s instead of 809), and 100,000 clients
// that wake up by fifties 1 % less: there the server is idle at times, and whoever gives up would have been served. With 40 they give 802k/s.
const (
	lateSteps = 32 // late calls until it is the target
	lateShare = 50 // answers for one of them
)

// Missed is a call that was late. The delay that the server aims at is the measure of a step, and the most that it comes to.
func (l *Late) Missed(target time.Duration) { l.by = min(l.by+target/lateSteps, target) }

// Met is a call that was answered in time.
func (l *Late) Met(target time.Duration) { l.by = max(l.by-max(target/(lateSteps*lateShare), 1), 0) }

// By is the estimate.
func (l *Late) By() time.Duration { return l.by }
