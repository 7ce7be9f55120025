package admit

import "time"

// Reason says which policy refused; zero = none did.
type Reason uint8

// The reasons of a refusal, each counted apart.
const (
	ReasonNone       Reason = iota
	ReasonDraining          // the server is going away
	ReasonRetriesOff        // not a first attempt, and the operator lets none else in
	ReasonWarmup            // the server is still cold
	ReasonShed              // the operator sheds a share
	ReasonExpired           // it cannot be answered in time
	ReasonOverloaded        // the delay is too long for its level
	ReasonHeadroom          // the CPUs that are not kept free are busy
	ReasonClientRate        // its client's bucket is empty
	ReasonMethodRate        // its method's bucket is empty
	ReasonQueueFull         // as many wait as may wait
	ReasonWaited            // it waited longer than anything may
	ReasonCoDel             // taken from a standing queue
	ReasonShare             // the delay is too long for what is beyond its method's share
	ReasonCount             // how many there are
)

var reasonNames = [ReasonCount]string{
	"none", "draining", "retries off", "warming up", "shed", "expired", "overloaded", "headroom", "client's rate", "method's rate", "queue full",
	"waited too long", "standing queue", "beyond its share",
}

// String names the reason.
func (r Reason) String() string {
	if r >= ReasonCount {
		return "unknown"
	}
	return reasonNames[r]
}

// Advice tells the caller of a refused request what to do about it; the numbers are those of the wire.
type Advice uint8

// The advices of a refusal.
const (
	AdviceNone       Advice = 0
	AdviceDoNotRetry Advice = 1 // another attempt would only add to the overload
)

// Verdict is what a door says of a request. A refused one did not run.
type Verdict struct {
	OK     bool
	Reason Reason
	Advice Advice
	// RetryAfter is when the like may be let in again, as far as the policy can tell; zero = it cannot.
	RetryAfter time.Duration
}

// Counters count since the door was made. Every arrival is admitted, refused by one reason, or refused by somebody else before or behind the door; what waited in
// vain was admitted, and is counted among the refused as well.
type Counters struct {
	Arrivals uint64              `json:"arrival_count"`
	Repeated uint64              `json:"repeated_count"` // of the arrivals: not the first attempt
	Admitted uint64              `json:"admitted_count"`
	Refused  [ReasonCount]uint64 `json:"refused_counts"`
	Returned uint64              `json:"returned_count"` // of the admitted: refused behind the door, and their tokens given back
	Storms   uint64              `json:"storm_count"`    // retry storms that began
}

// Add makes the counters those of two doors together.
func (c *Counters) Add(other *Counters) {
	c.Arrivals += other.Arrivals
	c.Repeated += other.Repeated
	c.Admitted += other.Admitted
	for i, n := range other.Refused {
		c.Refused[i] += n
	}
	c.Returned += other.Returned
	c.Storms += other.Storms
}

// RefusedAll is the sum of the refused.
func (c *Counters) RefusedAll() (n uint64) {
	for _, v := range c.Refused {
		n += v
	}
	return n
}
