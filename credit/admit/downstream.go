package admit

// Of a ceiling: it falls by half at most, and rises by an eighth at least, each time that it is looked at, and it is gone when it is twice what the pool is.
const (
	ceilingFalls = 2
	ceilingRises = 8
	ceilingGone  = 2
)

// Downstream says how large the pool of a server may be that is itself a client: while calls wait for credits downstream, no more than it was granted there, so
// that its own clients wait, and not requests in its handlers. A server that has no demand downstream is granted little, and that is no reason to be small: so
// it bounds only while calls wait, and lets go step by step when they do not. The zero Downstream bounds nothing.
type Downstream struct {
	ceiling uint64
	waited  bool // the last time
}

// Update is told of its sessions downstream how many credits they have, requests under way included, and how many calls wait there, and how large its own pool is
// now. It returns the ceiling; zero = none. Calls that waited once may be a burst: they bound only if some wait the next time, too.
func (d *Downstream) Update(granted, waiting, pool uint64) uint64 {
	waited := d.waited
	d.waited = waiting > 0
	switch {
	case waiting > 0 && waited:
		from := pool
		if d.ceiling > 0 {
			from = d.ceiling
		}
		d.ceiling = max(granted, from/ceilingFalls, 1)
	case waiting == 0 && d.ceiling > 0:
		if d.ceiling += max(d.ceiling/ceilingRises, 1); d.ceiling >= ceilingGone*max(pool, 1) {
			d.ceiling = 0
		}
	}
	return d.ceiling
}
