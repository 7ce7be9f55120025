package sim

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// StepKind is what a handler does in one step.
type StepKind uint8

// The kinds of step.
const (
	StepCompute StepKind = iota // has a CPU for so long
	StepDevice                  // waits for a device, which works for so long; the CPU is free meanwhile
	StepLock                    // waits until it has a lock
	StepUnlock                  // gives it back
	StepAwait                   // begins something elsewhere, and waits until it is told to go on: see Handling
)

// Step is part of what a handler does.
type Step struct {
	Kind StepKind
	On   int // which device or lock
	For  time.Duration
	// Begin begins what a StepAwait waits for.
	Begin func(*Handling)
}

// Work is what a call says of itself, in its payload.
type Work struct {
	ID      uint64        // unique in the world
	Service time.Duration // that its handler is to take
	Class   int           // which method
}

// workBytes is the size of a payload, of which the first idBytes are answered.
const (
	idBytes   = 8
	workBytes = idBytes + 8 + 8
)

func decodeID(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

func (k Work) encode(b []byte) {
	binary.BigEndian.PutUint64(b, k.ID)
	binary.BigEndian.PutUint64(b[8:], uint64(k.Service))
	binary.BigEndian.PutUint64(b[16:], uint64(k.Class))
}

// decodeWork reads a payload. Only this package writes them, and packets that were damaged do not get this far.
func decodeWork(b []byte) Work {
	return Work{
		ID: decodeID(b), Service: time.Duration(binary.BigEndian.Uint64(b[8:])),
		Class: int(binary.BigEndian.Uint64(b[16:])),
	}
}

// Plan says what the handler of a request does: it appends to steps.
type Plan func(k Work, steps []Step) []Step

// Compute is the plan of a handler that computes and waits for nothing.
func Compute(k Work, steps []Step) []Step { return append(steps, Step{For: k.Service}) }

// methodName names the method of a class.
func methodName(class int) string { return "work" + strconv.Itoa(class) }

// job is a handler under way.
type job struct {
	request *dispatcher.Request
	m       *Machine
	life    int
	steps   []Step
	at      int
	ticket  admit.Ticket // at the gate of a lock
	next    *job
}

// current is the step that the job is at; nil = it has returned.
func (j *job) current() *Step {
	if j.at == len(j.steps) {
		return nil
	}
	return &j.steps[j.at]
}

// refuse ends the handler: it could not get what it needs.
func (j *job) refuse() { j.at, j.request.Status = len(j.steps), wire.StatusUnavailable }

// begin makes a job of a request that was taken off the queue.
func (m *Machine) begin(r *dispatcher.Request) *job {
	j := m.spare
	if j == nil {
		j = &job{m: m}
	} else {
		m.spare, j.next = j.next, nil
	}
	k := decodeWork(r.Payload)
	m.w.checks.ran(k.ID)
	r.Started = m.w.now
	r.Reply = append(r.Reply, r.Payload[:idBytes]...)
	j.request, j.life, j.at = r, m.life, 0
	j.steps = m.cfg.Plan(k, j.steps[:0])
	return j
}

func (m *Machine) free(j *job) {
	j.request = nil
	j.next, m.spare = m.spare, j
}

// jobQueue is first in, first out.
type jobQueue struct{ head, tail *job }

func (q *jobQueue) put(j *job) {
	if q.tail == nil {
		q.head = j
	} else {
		q.tail.next = j
	}
	q.tail, j.next = j, nil
}

func (q *jobQueue) take() *job {
	j := q.head
	if j == nil {
		return nil
	}
	q.head = j.next
	if q.head == nil {
		q.tail = nil
	}
	j.next = nil
	return j
}

// device serves a few at a time, first come, first served.
type device struct {
	free    int
	waiting jobQueue
}

// wait does a step that is none of a CPU's. It reports whether the job can go on at once.
func (m *Machine) wait(j *job, s *Step) bool {
	switch s.Kind {
	case StepDevice:
		if d := &m.devices[s.On]; d.free > 0 {
			d.free--
			m.w.at(m.w.now.Add(s.For), j)
		} else {
			d.waiting.put(j)
		}
		return false
	case StepAwait:
		m.await(j, s)
		return false
	case StepLock:
		if !m.locks[s.On].take(m, j) {
			return j.current() == nil
		}
	case StepUnlock:
		m.locks[s.On].giveBack(m, j)
	}
	j.at++
	return true
}

// act is when a device is done with the job.
func (j *job) act(w *World) {
	m := j.m
	if j.life != m.life {
		return
	}
	d := &m.devices[j.steps[j.at].On]
	j.at++
	m.ready.put(j)
	if next := d.waiting.take(); next != nil {
		w.at(w.now.Add(next.steps[next.at].For), next)
	} else {
		d.free++
	}
	m.assign()
}
