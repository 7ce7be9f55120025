package faultsim

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// What is drawn can be played, and is the same each time.
func TestDrawnPlansAreValid(t *testing.T) {
	seed := seedtest.Seed(t)
	for i := range uint64(1000) {
		p := Draw(seed + i)
		if err := p.Validate(); err != nil {
			t.Fatalf("seed %d: %v", p.Seed, err)
		}
		if !reflect.DeepEqual(p, Draw(p.Seed)) {
			t.Fatalf("seed %d: drawn in two ways", p.Seed)
		}
	}
}

func TestBadPlans(t *testing.T) {
	for name, spoil := range map[string]func(*Plan){
		"no host":          func(p *Plan) { p.Hosts = 0 },
		"no session":       func(p *Plan) { p.Sessions = 0 },
		"too many":         func(p *Plan) { p.Sessions = sessionsMax + 1 },
		"no CPU":           func(p *Plan) { p.CPUs = 0 },
		"negative slots":   func(p *Plan) { p.Slots = -1 },
		"no RTT":           func(p *Plan) { p.RTT = 0 },
		"too long":         func(p *Plan) { p.End = timeMax + 1 },
		"no scheme":        func(p *Plan) { p.Scheme = "voodoo" },
		"call too late":    func(p *Plan) { p.Calls[0].At = 2 * p.End },
		"call of nobody":   func(p *Plan) { p.Calls[0].Session = 1 },
		"close of nobody":  func(p *Plan) { p.Closes = []Close{{Session: -1}} },
		"no such fault":    func(p *Plan) { p.Faults = []Fault{{Kind: "fire"}} },
		"no such message":  func(p *Plan) { p.Faults = []Fault{{Kind: Drop, Message: "postcard"}} },
		"no such host":     func(p *Plan) { p.Faults = []Fault{{Kind: CutTo, Host: 1}} },
		"no probability":   func(p *Plan) { p.Faults = []Fault{{Kind: Loss, Share: 1.5}} },
		"fault never ends": func(p *Plan) { p.Faults = []Fault{{Kind: StallServer, For: 2 * p.End}} },
	} {
		p := quiet()
		spoil(&p)
		if _, err := Play(t.Context(), p); !errors.Is(err, ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"unknown field": `{"weather":"fine"}`, "no JSON": "seed 3", "incomplete": "{}"} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
