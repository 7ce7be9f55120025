//go:build linux

package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/bench/child"
	"github.com/stillwater-rpc/stillwater/bench/load"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/target"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// The names of the server's two lives in the log.
const (
	firstBoot  = 1
	secondBoot = 2
)

// life is what was seen of one server that was killed and came back.
type life struct {
	Kind string `json:"kind"`

	Pings    pings `json:"pings"`
	Attached bool  `json:"program_attached"` // after the kill, before the restart serves

	GoodBefore  float64       `json:"good_share_before"` // of the offered, before the kill
	KillToReady time.Duration `json:"kill_to_ready_ns"`
	ReadyToGood time.Duration `json:"ready_to_good_ns"`
	Recovered   bool          `json:"recovered"`
	Sessions    int           `json:"sessions_served_again_count"`

	Requests      uint64    `json:"request_count"`
	Answered      uint64    `json:"answered_count"`
	Rejected      uint64    `json:"rejected_count"`
	NeverSent     uint64    `json:"never_sent_count"`
	Unknown       uint64    `json:"unknown_count"`
	Executed      [2]uint64 `json:"executed_counts"` // by life
	Violations    uint64    `json:"violation_count"`
	Examples      []string  `json:"violations,omitempty"`
	Disagreements []string  `json:"disagreements,omitempty"` // of our own books with the checker's, or with themselves
}

// moments are the instants of one round.
type moments struct{ killed, ready clock.Time }

// kill runs one round.
func (s settings) kill(ctx context.Context, p *child.Pair, perS float64, seed uint64) (l life, err error) {
	logs, err := prove.NewLogs(int(perS*1.5*(warmup+s.before+s.after).Seconds()) + 10_000)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	serve := child.ServeRequest{Log: logs.Server.Path(), Boot: firstBoot}
	server, err := p.Serve(ctx, serve)
	if err != nil {
		return l, err
	}
	if _, err = p.Dial(ctx, child.DialRequest{Address: server.Address, Sessions: s.sessions, Log: logs.Client.Path()}); err != nil {
		return l, err
	}
	place := p.Lab.Client.Place()
	ping, err := startPinger(p.Lab.Client.PID(), place.Peer)
	if err != nil {
		return l, err
	}
	l.Kind = "round"
	at, err := s.underLoad(ctx, p, perS, seed, func() (moments, error) {
		serve.Boot = secondBoot
		return l.restart(ctx, p, serve)
	})
	var pingErr error
	l.Pings, pingErr = ping.finish()
	if err = errors.Join(err, pingErr); err != nil {
		return l, err
	}
	return l, l.judge(ctx, p, logs, s, at)
}

// underLoad runs f in the midst of an open loop, and waits for the end of both.
func (s settings) underLoad(ctx context.Context, p *child.Pair, perS float64, seed uint64, f func() (moments, error)) (moments, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := p.Open(ctx, target.MethodSpin, load.OpenLoop{
			Plan: load.Plan{
				Sessions: s.sessions, ServiceTime: prove.Work, SLO: s.deadline, Deadline: s.deadline,
				Warmup: warmup, Duration: s.before + s.after, BucketWidth: -1, Seed: seed,
			},
			Rate: perS,
		})
		ended <- err
	}()
	select {
	case err := <-ended: // this process was held up: the books must balance all the same, but nothing shows a recovery
		at, failed := f()
		return at, errors.Join(err, failed)
	case <-time.After(warmup + s.before):
	}
	at, err := f()
	if err != nil {
		cancel()
	}
	return at, errors.Join(err, <-ended)
}

// restart kills the server, and starts its successor as soon as it is dead.
func (l *life) restart(ctx context.Context, p *child.Pair, serve child.ServeRequest) (at moments, err error) {
	at.killed = clock.Now()
	if err := p.Lab.Server.Kill(syscall.SIGKILL); err != nil {
		return at, err
	}
	if err := errors.Join(p.Lab.Server.Wait(ctx), p.Lab.Server.Restart(ctx)); err != nil {
		return at, err
	}
	if l.Attached, err = p.Attached(ctx); err != nil {
		return at, err
	}
	_, err = p.Serve(ctx, serve)
	at.ready = clock.Now()
	return at, err
}

// judge reads the logs when nobody writes any more.
func (l *life) judge(ctx context.Context, p *child.Pair, logs *prove.Logs, s settings, at moments) error {
	stats, err := p.ClientStats(ctx)
	if err != nil {
		return err
	}
	if err := p.Audit(ctx); err != nil {
		l.Disagreements = append(l.Disagreements, err.Error())
	}
	if err := p.Stop(ctx); err != nil { // an abandoned request may still run; the log must be whole
		return err
	}
	history, err := checker.Load(logs.Client, logs.Server)
	if err != nil {
		return err
	}
	report := checker.Check(history)
	if err := prove.Agree(stats, report); err != nil {
		l.Disagreements = append(l.Disagreements, err.Error())
	}
	l.Requests, l.Answered, l.Rejected = report.Marks, report.Of(checker.OK), report.Of(checker.Rejected)
	l.NeverSent, l.Unknown = report.Of(checker.NeverSent), report.Of(checker.Unknown)
	l.Executed = [2]uint64{report.Executed[firstBoot], report.Executed[secondBoot]}
	l.Violations, l.Examples = report.Count, report.Violations
	l.Sessions = sessionsOf(history.Executions, secondBoot)

	g := prove.NewGoodput(history.Endings, s.deadline)
	l.GoodBefore = g.Share(at.killed.Add(-s.before), at.killed.Add(-s.deadline)) // what was due just before may have lost its answer
	l.KillToReady = at.ready.Sub(at.killed)
	l.ReadyToGood, l.Recovered = g.Recovery(at.ready, prove.RecoveredShare*l.GoodBefore)
	l.Recovered = l.Recovered && l.GoodBefore > 0 // nothing is easily as good as nothing
	return nil
}

// sessionsOf is how many sessions a boot served.
func sessionsOf(executions []checker.Execution, boot uint32) int {
	seen := map[uint32]bool{}
	for _, x := range executions {
		if x.Boot == boot {
			seen[x.Session] = true
		}
	}
	return len(seen)
}
