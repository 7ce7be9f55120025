package admit

import "time"

// MethodConfig is what is asked of the requests of one method. The zero value asks nothing.
type MethodConfig struct {
	// Cost is what one request costs, in units, at most CostMax: a batch of expensive requests is not to have as much as so many cheap ones. 0 = 1 for buckets;
	// for floors and shares, 1 beside methods that say something, and what its service was learnt to take where none does.
	Cost int
	// Rate and Burst bound the units a second that are let in; rate 0 = any, burst 0 = a tenth of a second of the rate.
	Rate, Burst int
	// InService bounds how many may be in their handlers at once; 0 = any.
	InService int
	// Weight is its part of a server that has too much to do, beside those of the others, at most WeightMax; 0 = 1, and while no method says one there are no
	// parts. See Weights.
	Weight int
	// Level is for requests that say none; Unset = Critical.
	Level Level
}

// Method is what a door keeps of one method. It has the door's owner.
type Method struct {
	Bucket    Bucket
	Age       Age
	InService InService
	shares    Shares
	cost      int // 0 = it says none
	level     Level
}

// burstShare is the part of a second's rate that a bucket holds where nothing is said.
const burstShare = 10

// NewMethod makes one.
func NewMethod(c MethodConfig) Method {
	burst := c.Burst
	if burst <= 0 {
		burst = max(c.Rate/burstShare, 1)
	}
	return Method{
		Bucket: NewBucket(c.Rate, burst), InService: NewInService(c.InService),
		shares: newShares(c.Weight), cost: min(max(c.Cost, 0), CostMax), level: c.Level,
	}
}

// Cost is what one of its requests costs a bucket, in units.
func (m *Method) Cost() int { return max(m.cost, 1) }

// Expected is the learnt mean of its service time.
func (m *Method) Expected() time.Duration { return m.Age.Expected() }
