package credit

// NextWindow is the published law of W', as in the package comment, for schemes that share it: of a session at its answer, of a pool, of n_c, and with
// the artifact's floor or without.
func NextWindow(h Holding, pool, sessions uint64, floor bool) uint64 {
	overcommit := overcommitment(h.Issued, pool, sessions)
	wanted := h.Pending + h.Demand + overcommit
	var window uint64
	switch {
	case h.Issued < pool:
		window = min(wanted, h.Window+pool-h.Issued)
	case h.Issued == pool:
		window = min(wanted, h.Window)
	case h.Window > 0: // more is issued than the pool has
		window = min(wanted, h.Window-1)
	}
	if window == 0 && !h.Rejected && floor {
		return overcommit
	}
	return window
}

// fairWindow is the same law, and fair where credits are scarce: a session gets up to its share of the pool at once and one more with each answer
// beyond it, none beyond it while others wait, and only a session that has more than its share loses one. If more is issued than the pool has, there
// is one; if all of them are idle, the pool falls until those that are not are above their shares, too.
//
// Shares that differ and are less than a credit are a matter of turns: whoever was answered goes to the end of the drained lists, and no floor lets it
// stay, unless the pool has plenty.
func fairWindow(h Holding, pool, sessions uint64, floor bool) uint64 {
	overcommit := overcommitment(h.Issued, pool, sessions)
	wanted := h.Pending + h.Demand + overcommit
	above := h.Window*h.Weights > pool*h.Weight
	turns := h.Weighted && pool*h.Weight < h.Weights
	var window uint64
	switch {
	case turns && pool < h.Issued+min(sessions, plentyMax)/2, h.Issued > pool && above:
		window = min(wanted, max(h.Window, 1)-1)
	case h.Issued < pool && !(h.Scarce && above):
		window = min(wanted, h.Window+pool-h.Issued, max(pool*h.Weight/h.Weights, h.Window+1))
	default:
		window = min(wanted, h.Window)
	}
	if window == 0 && !h.Rejected && floor && !turns {
		return overcommit
	}
	return window
}

// plentyMax bounds how much of the pool is plenty: half a credit for each session, or for so many.
const plentyMax = 64

// overcommitment is C_oc. The common case, a surplus of less than two credits per client, needs no division.
func overcommitment(issued, pool, sessions uint64) uint64 {
	if sessions == 0 || pool < issued || pool-issued < 2*sessions {
		return 1
	}
	return (pool - issued) / sessions
}
