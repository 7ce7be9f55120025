package client

import (
	"time"

	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// BudgetConfig sets a [Budget]. Zero values mean the documented defaults.
type BudgetConfig struct {
	Ratio float64 // attempts beyond the first for each call; 0 = 0.1, below zero = none
	Floor float64 // a second, whatever is called, while less than one is left; 0 = 0.1, below zero = none
	Burst int     // how many may be saved; 0 = 10
}

// Defaults of a budget.
const (
	budgetRatioDefault = 0.1
	budgetFloorDefault = 0.1
	budgetBurstDefault = 10
	budgetBurstMax     = 1 << 20
)

// attemptUnits is one attempt: a budget counts in integers, so that its books are exact.
const attemptUnits = 1_000_000

// Budget is what attempts beyond the first are paid from, retries and hedges alike: a tenth of the calls, so that a client whose every call fails sends 1.1 times
// what it sends otherwise, and not three times (SRE book, chapter 21: "per-client retry budget" of 10 %; three layers of it make 1.33, three of three attempts 27).
//
// It is a bucket: each call puts Ratio of an attempt into it, an attempt takes one out. It holds at most Burst, and begins with one. Floor is for who calls rarely.
// A clock that stalls, jumps or is an hour further puts at most one attempt into it.
type Budget struct {
	balance int64 // in units, as all of these
	deposit int64 // of a call
	max     int64
	perUnit time.Duration // of the floor; 0 = none
	last    clock.Time    // up to when the floor was paid
	books   BudgetBooks
}

// BudgetBooks are what went through a budget, in millionths of an attempt. Balance = Made - Taken + Returned - Lost, at every moment.
type BudgetBooks struct {
	Balance  int64
	Made     int64 // by calls, by the floor, and the one that it began with
	Taken    int64
	Returned int64 // taken for an attempt that was not sent
	Lost     int64 // returned when the bucket was full
}

// NewBudget makes a budget with one attempt in it, or none where it is for none.
func NewBudget(cfg BudgetConfig) Budget {
	def := func(v *float64, value float64) {
		if *v == 0 {
			*v = value
		}
		*v = max(*v, 0)
	}
	def(&cfg.Ratio, budgetRatioDefault)
	def(&cfg.Floor, budgetFloorDefault)
	if cfg.Burst <= 0 {
		cfg.Burst = budgetBurstDefault
	}
	b := Budget{deposit: int64(min(cfg.Ratio, budgetBurstMax) * attemptUnits), max: int64(min(cfg.Burst, budgetBurstMax)) * attemptUnits}
	if cfg.Floor > 0 {
		b.perUnit = max(time.Duration(float64(time.Second)/(cfg.Floor*attemptUnits)), 1)
	}
	if b.deposit > 0 || b.perUnit > 0 {
		b.make(attemptUnits, b.max)
	}
	return b
}

// make adds units, up to a bound.
func (b *Budget) make(units, most int64) {
	units = max(min(units, most-b.balance), 0)
	b.balance += units
	b.books.Made += units
}

// Deposit counts a call: its first attempt.
func (b *Budget) Deposit() { b.make(b.deposit, b.max) }

// Take takes one attempt out, and reports whether there was one. Who does not send it gives it back with Return, once.
func (b *Budget) Take(now clock.Time) bool {
	b.payFloor(now)
	if b.balance < attemptUnits {
		return false
	}
	b.balance -= attemptUnits
	b.books.Taken += attemptUnits
	return true
}

// Return gives back what was taken for an attempt that was never sent.
func (b *Budget) Return() {
	b.books.Returned += attemptUnits
	b.balance += attemptUnits
	if over := b.balance - b.max; over > 0 {
		b.balance -= over
		b.books.Lost += over
	}
}

// payFloor puts in what the floor has earned since it was last paid, until there is one attempt.
func (b *Budget) payFloor(now clock.Time) {
	passed := now.Sub(b.last)
	if b.perUnit == 0 {
		return
	}
	if b.balance >= attemptUnits || b.last == 0 || passed < 0 {
		b.last = now
		return
	}
	units := int64(passed / b.perUnit)
	b.last = b.last.Add(time.Duration(units) * b.perUnit)
	b.make(units, attemptUnits)
}

// Left is the number of attempts that could be taken out, without what the floor has earned since.
func (b *Budget) Left() int { return int(b.balance / attemptUnits) }

// Books reads what went through it.
func (b *Budget) Books() BudgetBooks {
	books := b.books
	books.Balance = b.balance
	return books
}
