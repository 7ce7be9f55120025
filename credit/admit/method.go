package admit

import "time"

// MethodConfig is what is asked of the requests of one method. The zero value asks nothing.
type MethodConfig struct {
	// Cost is what one request costs, in units; 0 = 1, at most CostMax. Buckets, floors and shares are in units, so that a batch of expensive requests does not
	// have as much as so many cheap ones.
	Cost int
	// Rate and Burst bound the units a second that are let in; rate 0 = any, burst 0 = a tenth of a second of the rate.
	Rate, Burst int
	// InService bounds how many may be in their handlers at once; 0 = any.
	InService int
	// Level is for requests that say none; Unset = Critical.
	Level Level
}

// Method is what a door keeps of one method. It has the door's owner.
type Method struct {
	Bucket    Bucket
	Age       Age
	InService InService
	cost      int
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
		cost: min(max(c.Cost, 1), CostMax), level: c.Level,
	}
}

// Cost is what one of its requests costs, in units.
func (m *Method) Cost() int { return max(m.cost, 1) }

// Expected is the learnt mean of its service time.
func (m *Method) Expected() time.Duration { return m.Age.Expected() }
