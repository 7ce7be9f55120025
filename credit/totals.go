package credit

// Counters count what should not happen, and what is rare. They only ever grow.
type Counters struct {
	Ahead   uint64 // a `next` beyond every limit that the client can have; ignored
	Future  uint64 // an applied seq that was never sent; ignored
	Refused uint64 // requests without a credit
	Full    uint64 // requests refused because the session's slots are all pending
	Lapses  uint64 // leases that ran out
	Woken   uint64 // grants to drained sessions
	Misused uint64 // events for no session, and answers to nothing: a fault of the caller
}

// Totals are the sums of a ledger, in credits and sessions.
type Totals struct {
	Pool       uint64 // C
	Issued     uint64 // C_issued, the sum of the windows
	Pending    uint64 // the sum of p
	Active     uint64 // n_c: sessions whose lease has not run out
	Registered uint64
	Drained    uint64 // sessions on the drained lists
	Counters   Counters
}
