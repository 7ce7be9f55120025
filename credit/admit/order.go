package admit

import "time"

// OrderConfig says in which order a queue is served. The zero value is first come, first served.
type OrderConfig struct {
	// NewestFirst serves the newest first while the oldest has waited for longer than this; 0 = never.
	NewestFirst time.Duration
	// Expire refuses those that have waited for longer; 0 = four times NewestFirst. Nobody would come to them while new ones arrive.
	Expire time.Duration
}

// expireDefault is how many times NewestFirst the oldest may be.
const expireDefault = 4

// Order serves first come, first served, and the newest first while overloaded (adaptive LIFO: Maurer, "Fail at Scale", ACM Queue 13(8), 2015): first come
// first served makes everybody wait as long as the queue is, newest first lets most be in time and some far too late. It goes back when the oldest
// has waited for less than half as long as it took to turn. It compares ages, and keeps no clock.
type Order struct {
	turn, expire time.Duration
	newest       bool
}

// NewOrder makes one.
func NewOrder(c OrderConfig) Order {
	o := Order{turn: max(c.NewestFirst, 0), expire: max(c.Expire, 0)}
	if o.turn > 0 && o.expire == 0 {
		o.expire = expireDefault * o.turn
	}
	return o
}

// Newest reports whether the newest is to be served next; age is how long the oldest has waited.
func (o *Order) Newest(age time.Duration) bool {
	switch {
	case o.turn == 0:
		return false
	case age > o.turn:
		o.newest = true
	case age < o.turn/2:
		o.newest = false
	}
	return o.newest
}

// On reports whether the newest are served first now.
func (o *Order) On() bool { return o.newest }

// Expired reports whether one that has waited for so long is to be refused. It is asked of the oldest.
func (o *Order) Expired(age time.Duration) bool { return o.expire > 0 && age > o.expire }

// ExpiresAfter is how long one may wait; zero = for ever.
func (o *Order) ExpiresAfter() time.Duration { return o.expire }
