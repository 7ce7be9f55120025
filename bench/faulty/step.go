//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/dispatcher/faults"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// step is one load over one network.
type step struct {
	Kind     string             `json:"kind"`
	Load     float64            `json:"load"` // times capacity
	Deadline time.Duration      `json:"deadline_ns"`
	Fault    faults.Probability `json:"fault_probability"` // of each of the three

	CapacityPerS float64 `json:"capacity_per_s"`
	GoodputPerS  float64 `json:"goodput_per_s"`  // within the SLO
	AnsweredPerS float64 `json:"answered_per_s"` // within the deadline
	Retransmits  float64 `json:"retransmissions_per_call"`

	Requests      uint64        `json:"request_count"`
	Latest        time.Duration `json:"outcome_after_deadline_ns_max"`
	Lateness      int64         `json:"generator_lateness_ns_max"` // what the machine did to an innocent bystander
	Executed      uint64        `json:"executed_count"`
	Violations    uint64        `json:"violation_count"`
	Examples      []string      `json:"violations,omitempty"`
	Disagreements []string      `json:"disagreements,omitempty"` // of our own books with the checker's, or with themselves

	Registered   int    `json:"session_count"`         // at the server, when all is quiet
	ServerUnused uint64 `json:"server_unused_count"`   // the sum over its sessions
	ClientUnused uint64 `json:"client_unused_count"`   // the sum of limit - next over the client's
	PacketsLost  uint64 `json:"packets_dropped_count"` // by both ports, faults among them
}

// bootOf the only server of a step.
const bootOf = 1

// outstandingMax is above what a long deadline at 2 times capacity can have waiting.
const outstandingMax = 1 << 16

// one offers one load to a fresh server.
func (s settings) one(ctx context.Context, p *child.Pair, o offer, f faults.Probability, capacity float64, seed uint64) (st step, err error) {
	logs, err := prove.NewLogs(int(o.times*capacity*1.5*(s.warmup+s.window).Seconds()) + 50_000)
	if err != nil {
		return st, err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	// Each end spoils what it receives, so each packet is spoilt once.
	bad := func(seed uint64) child.Transport {
		return child.Transport{Faults: faults.Config{Seed: seed, Loss: f, Duplicate: f, Reorder: f, Directions: faults.Receive}}
	}
	server, err := p.Serve(ctx, child.ServeRequest{SLO: s.slo, Log: logs.Server.Path(), Boot: bootOf, Transport: bad(2 * seed)})
	if err != nil {
		return st, err
	}
	_, err = p.Dial(ctx, child.DialRequest{
		Address: server.Address, Sessions: s.sessions, Log: logs.Client.Path(), Transport: bad(2*seed + 1),
	})
	if err != nil {
		return st, err
	}
	st = step{Kind: "step", Load: o.times, Deadline: s.slo, Fault: f, CapacityPerS: capacity}
	if o.patient {
		st.Deadline = s.patient
	}
	result, err := p.Open(ctx, target.MethodSpin, load.OpenLoop{
		Plan: load.Plan{
			Sessions: s.sessions, ServiceTime: prove.Work, SLO: s.slo, Deadline: st.Deadline,
			Warmup: s.warmup, Duration: s.window, BucketWidth: -1, Seed: seed,
		},
		Rate: o.times * capacity, MaxOutstanding: outstandingMax,
	})
	if err != nil {
		return st, err
	}
	st.GoodputPerS, st.AnsweredPerS, st.Lateness = result.GoodputPerS, float64(result.Counts.OK)/s.window.Seconds(), result.LatenessNsMax
	return st, st.judge(ctx, p, logs)
}

// judge looks at the books when all is quiet, and at the logs when nobody writes any more.
func (st *step) judge(ctx context.Context, p *child.Pair, logs *prove.Logs) error {
	server, err := quiesce(ctx, p)
	if err != nil {
		return err
	}
	disagree := func(err error) {
		if err != nil {
			st.Disagreements = append(st.Disagreements, err.Error())
		}
	}
	disagree(p.Audit(ctx))
	st.Registered = server.Sessions
	if err := st.credits(ctx, p, server.Issued, disagree); err != nil {
		return err
	}
	client, err := p.ClientStats(ctx)
	if err != nil {
		return err
	}
	if err := p.Stop(ctx); err != nil {
		return err
	}
	history, err := checker.Load(logs.Client, logs.Server)
	if err != nil {
		return err
	}
	report := checker.Check(history)
	disagree(prove.Agree(client, report))
	st.Requests, st.Executed, st.Latest = report.Marks, report.Executions(), report.Latest
	st.Violations, st.Examples = report.Count, report.Violations
	st.Retransmits = float64(client.Retransmissions) / float64(max(client.Calls, 1))
	for _, s := range []sw.Stats{server, client} {
		st.PacketsLost += s.Port.ReceiveDropped + s.Port.SendDropped
	}
	return nil
}

// credits compares what both ends have in their books of each session's credits.
func (st *step) credits(ctx context.Context, p *child.Pair, issued uint64, disagree func(error)) error {
	server, client, err := p.Credits(ctx)
	if err != nil {
		return err
	}
	at := make(map[uint32]sw.Credit, len(server))
	for _, s := range server {
		at[s.Session] = s
		st.ServerUnused += s.Limit - s.Next
	}
	different := 0
	for _, c := range client {
		if c.Limit > c.Next {
			st.ClientUnused += c.Limit - c.Next
		}
		s := at[c.Session]
		if s.Lapsed {
			continue // the machine stood still for a lease: taken back, as it should be
		}
		c.Lapsed = false // the client's lease is the shorter one; it changes no number
		if c != s {
			if different++; different == 1 {
				disagree(fmt.Errorf("a session has %+v, its server %+v", c, s))
			}
		}
	}
	if different > 1 {
		disagree(fmt.Errorf("so have %d of %d sessions", different, len(client)))
	}
	if len(server) != len(client) || st.ServerUnused != issued {
		disagree(fmt.Errorf("%d sessions at the server for %d; their unused credits are %d, of %d issued", len(server), len(client), st.ServerUnused, issued))
	}
	return nil
}

// quiesce waits until the server has nothing left to do, ends the faults, has each session make one more call, since what was lost of
// the last words about its credits is made good by the next, and returns the server's books when no packet is under way.
func quiesce(ctx context.Context, p *child.Pair) (server sw.Stats, err error) {
	const (
		patience = 5 * time.Second
		settle   = 20 * time.Millisecond // 100 times what a packet is held back, and well below a lease
	)
	for until := time.Now().Add(patience); ; time.Sleep(settle) {
		if server, err = p.ServerStats(ctx); err != nil {
			return server, err
		}
		if server.Queued+server.InService == 0 {
			break
		}
		if time.Now().After(until) {
			return server, fmt.Errorf("%v after the last outcome, the server has %d requests queued and %d in service",
				patience, server.Queued, server.InService)
		}
	}
	if err := errors.Join(p.Heal(ctx), p.Round(ctx)); err != nil {
		return server, err
	}
	time.Sleep(settle)
	return p.ServerStats(ctx)
}
