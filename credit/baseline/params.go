package baseline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
)

// The shapes of a service time's distribution, as the published thresholds tell them apart.
const (
	Constant    = "constant"
	Exponential = "exponential"
	Bimodal     = "bimodal"
)

var shapes = []string{Constant, Exponential, Bimodal}

// Params are what the published settings depend on. The zero value is the set-up of the paper: 10 us of exponential service, an RTT of 10 us,
// 1,000 clients; with one worker.
type Params struct {
	Service time.Duration `json:"service_ns,omitempty"` // mean service time; 0 = 10 us
	RTT     time.Duration `json:"rtt_ns,omitempty"`     // of the network; 0 = 10 us
	SLO     time.Duration `json:"slo_ns,omitempty"`     // 0 = 10 (Service + RTT), the paper's rule
	Shape   string        `json:"shape,omitempty"`      // of the service time: constant, exponential or bimodal; "" = exponential
	Clients int           `json:"clients,omitempty"`    // sessions of the server; 0 = 1000
	Workers int           `json:"workers,omitempty"`    // requests that can be computed on at once; 0 = 1
	Slots   int           `json:"slots,omitempty"`      // most that a session may have outstanding, where the scheme says nothing; 0 = credit.DefaultSlots
	NoFloor bool          `json:"no_floor,omitempty"`   // stillwater without the artifact's floor
	Share   float64       `json:"share,omitempty"`      // the controller's part of the server, where several share it: stillwater grows by as much; 0 = 1
	Seed    uint64        `json:"seed,omitempty"`       // of SEDA's first rates and of DAGOR's priorities
	Tuning  Tuning        `json:"tuning,omitzero"`      // what is to differ from the published settings
}

// withDefaults puts the paper's set-up in where nothing is said.
func (p Params) withDefaults() Params {
	if p.Service == 0 {
		p.Service = 10 * time.Microsecond
	}
	if p.RTT == 0 {
		p.RTT = publishedRTT
	}
	if p.SLO == 0 {
		p.SLO = sloFactor * (p.Service + p.RTT)
	}
	if p.Shape == "" {
		p.Shape = Exponential
	}
	if p.Clients == 0 {
		p.Clients = publishedClients
	}
	if p.Workers == 0 {
		p.Workers = 1
	}
	if p.Slots == 0 {
		p.Slots = credit.DefaultSlots
	}
	return p
}

// validate refuses what has no meaning.
func (p Params) validate() error {
	switch {
	case p.Service < 0 || p.RTT < 0 || p.SLO < 0 || p.Clients < 0 || p.Workers < 0 || p.Slots < 0 || p.Share < 0:
		return fmt.Errorf("baseline: service %v, RTT %v, SLO %v, %d clients, %d workers, %d slots, share %v: none may be negative",
			p.Service, p.RTT, p.SLO, p.Clients, p.Workers, p.Slots, p.Share)
	case p.Shape != "" && !slices.Contains(shapes, p.Shape):
		return fmt.Errorf("baseline: shape %q: it must be %s", p.Shape, strings.Join(shapes, ", "))
	}
	return p.Tuning.validate()
}

// The set-up that the published settings are for (OSDI 2020, section 5).
const (
	publishedRTT     = 10 * time.Microsecond
	publishedClients = 1000
	sloFactor        = 10
	targetShare      = 0.4 // of the SLO
	thresholdShare   = 0.8 // of the SLO: twice the target
)

// published are settings for 1, 10 and 100 us of service.
type published[T any] [3]T

// at is the column for the nearest mean, by its magnitude.
func (t published[T]) at(service time.Duration) T {
	switch {
	case service < 3162*time.Nanosecond: // the geometric mean of 1 and 10 us
		return t[0]
	case service < 31623*time.Nanosecond:
		return t[1]
	}
	return t[2]
}

// publishedSLO is 10 (service + RTT).
var publishedSLO = published[time.Duration]{110 * time.Microsecond, 200 * time.Microsecond, 1100 * time.Microsecond}

// delay is a published delay, in proportion to the SLO.
func (p Params) delay(us published[float64]) time.Duration {
	scale := float64(p.SLO) / float64(publishedSLO.at(p.Service))
	return time.Duration(math.Round(us.at(p.Service) * float64(time.Microsecond) * scale))
}

// share is a part of the SLO.
func (p Params) share(part float64) time.Duration { return time.Duration(part * float64(p.SLO)) }
