package credit

// Governor is a Controller whose pool can be held by somebody else than its law. Who has no such methods has no pool worth holding.
type Governor interface {
	// Freeze has the pool stay as it is, whatever the delay, until it is told otherwise: while an operator looks for what moves it.
	Freeze(frozen bool)
	// Ceiling bounds the pool from above, at least at one credit; 0 = no bound. A server that is itself a client has its own clients wait for what it
	// waits for: its effective pool is the smaller of its own and what it was granted downstream.
	Ceiling(credits uint64)
}

// governed is what a Governor was told.
type governed struct {
	frozen  bool
	ceiling uint64 // 0 = none
}

// Freeze is for a Governor.
func (g *governed) Freeze(frozen bool) { g.frozen = frozen }

// bound is the pool below the ceiling.
func (g *governed) bound(pool uint64) uint64 {
	if g.ceiling == 0 {
		return pool
	}
	return min(pool, g.ceiling)
}

// Ceiling bounds the pool that Window and Pool speak of. The law's own pool goes on beneath it, at most as far above what is issued as it ever is, so
// that it is there when the ceiling rises. While more is issued than the ceiling the floor is off, or a thousand sessions would keep a thousand credits.
func (b *Breakwater) Ceiling(credits uint64) {
	b.governed.ceiling = credits
	b.set(b.pool)
}

// keepsFloor reports whether the artifact's floor holds for this answer.
func (b *Breakwater) keepsFloor(h Holding) bool {
	return b.floor && (b.governed.ceiling == 0 || h.Issued <= b.governed.ceiling)
}
