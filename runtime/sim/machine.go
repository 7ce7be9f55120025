package sim

import (
	"errors"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Costs are what a message costs the CPU that handles it. One set of them stands for one machine, whatever the scheme.
type Costs struct {
	Receive time.Duration `json:"receive_ns"` // of each message that arrives
	Send    time.Duration `json:"send_ns"`    // of each reply of a handler
	Reject  time.Duration `json:"reject_ns"`  // of each refusal
	Credit  time.Duration `json:"credit_ns"`  // of each explicit credit update
}

// MachineConfig describes a server.
type MachineConfig struct {
	// CPUs run handlers. Zero or less means 1.
	CPUs int
	// Poller is a further CPU that handles all packets and no handler: the dispatcher of dedicated mode. Without it, whichever CPU is free handles
	// the next packet, and only then the next request: run to completion.
	Poller bool
	// Steered gives each of the CPUs a ring of its own, to which the network interface steers all packets of a host, as by a hash: run to completion
	// without a dispatcher. Who is busy with a handler lets its ring wait. It goes without a poller, and without threads.
	Steered bool
	// Threads has the CPUs run user-level threads, as the runtime of Breakwater's paper does: each has its own packets, which RSS fills by client, and its own
	// threads, which read a packet, run a handler or answer; one that has none takes those of another. Every request has one, so nothing bounds how many are
	// in service. The load signal is then the age of the oldest packet of all CPUs plus that of the oldest thread. No effect with a Poller.
	// docs/simulator.md says what comes of it.
	Threads bool
	// Pause takes a CPU away now and then; zero = never.
	Pause Pause
	Costs Costs
	// Ring is how many packets may wait for a CPU, on each ring; more are lost. Zero or less means 4096.
	Ring int
	// Devices says of each device how many requests it serves at the same time; Locks is the number of locks.
	Devices []int
	Locks   int
	// Gate is in front of each lock, and refuses who would have to wait there for too long: his handler ends, and says that it could not get what it needs. Its permits are 1.
	// Nil = whoever comes waits.
	Gate *admit.GateConfig
	// Classes is the number of methods, each with a learnt service time of its own. Zero or less means 1.
	Classes int
	// Admission is what is asked of the requests of each class, by its number; those beyond its end ask nothing.
	Admission []admit.MethodConfig
	// Plan says what the handler of a request does; nil = it computes for as long as its call says.
	Plan Plan
	// Serve is the dispatcher's configuration; its Credit and Parallel are set at each boot. A ledger is made anew for each.
	Serve  dispatcher.ServeConfig
	Ledger func() *credit.Ledger
	// Law is the thread that updates the ledger's controller, which is to be made by its Of; nil = the law is updated as soon as that is due. No effect without
	// Threads.
	Law *LawThread
}

const ringDefault = 4096

// Machine is a host that serves.
type Machine struct {
	*Host
	cfg     MachineConfig
	queues  []cpuQueues // one, or one for each CPU
	idle    []*cpu      // CPUs that run handlers and have nothing to do; the one that was last busy is last
	poller  *cpu        // nil without one
	polling bool        // the poller is busy
	ready   jobQueue
	done    jobQueue      // with a poller: handlers that have returned
	methods []wire.Method // by class
	devices []device
	locks   []lock
	spare   *job
	counted counters
	life    int // which boot: what began in an earlier one is void
	pauses  pauses
	reader  *cpu // with threads: the one that has received last

	dropped  uint64        // packets that found the ring full
	computed time.Duration // by handlers, on all CPUs
}

// counters are what the dispatcher had sent when it was last charged for it.
type counters struct{ rejects, updates uint64 }

// AddMachine adds a server.
func (w *World) AddMachine(cfg dispatcher.Config, m MachineConfig) (*Machine, error) {
	if m.Ledger == nil {
		return nil, errors.New("a machine needs a ledger")
	}
	m.Threads = m.Threads && !m.Poller
	m.Steered = m.Steered && !m.Poller && !m.Threads
	m.CPUs = max(m.CPUs, 1)
	m.Classes = max(m.Classes, 1)
	if m.Ring <= 0 {
		m.Ring = ringDefault
	}
	if m.Plan == nil {
		m.Plan = Compute
	}
	machine := &Machine{cfg: m}
	for class := range m.Classes {
		machine.methods = append(machine.methods, wire.MethodOf(methodName(class)))
	}
	machine.Host = w.AddHost(cfg)
	machine.Host.machine = machine
	machine.boot()
	return machine, nil
}

// Computed is how much CPU time handlers have had, on all CPUs together.
func (m *Machine) Computed() time.Duration { return m.computed }

// Waiting is how many packets and requests wait for a CPU.
func (m *Machine) Waiting() int { return m.packets() + m.d.Queued() }

// packets is how many are on the rings, or wait for the thread that reads them.
func (m *Machine) packets() (n int) {
	for i := range m.queues {
		n += m.queues[i].packets()
	}
	return n
}

// boot gives the machine its CPUs and a new ledger; the dispatcher is new already.
func (m *Machine) boot() {
	m.life++
	m.idle, m.poller, m.polling = m.idle[:0], nil, false
	m.queues = make([]cpuQueues, 1)
	if m.cfg.Steered || m.cfg.Threads {
		m.queues = make([]cpuQueues, m.cfg.CPUs)
	}
	for i := range m.cfg.CPUs {
		m.idle = append(m.idle, &cpu{m: m, life: m.life, number: i, queues: &m.queues[i%len(m.queues)]})
	}
	if m.cfg.Poller {
		m.poller = &cpu{m: m, life: m.life, queues: &m.queues[0]}
	}
	m.devices = make([]device, len(m.cfg.Devices))
	for i, depth := range m.cfg.Devices {
		m.devices[i] = device{free: max(depth, 1)}
	}
	m.locks = newLocks(m.cfg)
	m.ready, m.done, m.counted = jobQueue{}, jobQueue{}, counters{}
	serve := m.cfg.Serve
	serve.Credit, serve.Parallel = m.cfg.Ledger(), m.cfg.CPUs
	if m.cfg.Threads {
		serve.Backlog, serve.Queued, serve.Workers, serve.AdaptWorkers = m.backlog, m.queued, threadsMax, false
	}
	m.d.Serve(serve)
	for class, id := range m.methods {
		method := &dispatcher.Method{Name: methodName(class), ID: id}
		if class < len(m.cfg.Admission) {
			method.Admission = m.cfg.Admission[class]
		}
		if err := m.d.Register(method); err != nil {
			panic("sim: " + err.Error()) // the names are ours
		}
	}
	m.foreseePauses()
	m.sleep(&m.queues[0])
}

// kill loses what the process had.
func (m *Machine) kill() {
	m.life++
	for i := range m.queues {
		m.queues[i].drop(m.w)
	}
	if m.Host.cfg.TrustedNetwork {
		m.w.checks.forgive()
	}
}

// arrive puts a packet on the ring.
func (m *Machine) arrive(p *packet) {
	ring := &m.queuesOf(p).nic
	if ring.count >= m.cfg.Ring {
		m.dropped++
		m.w.net.lost++
		m.w.free(p)
		return
	}
	ring.put(p)
	m.assign()
}

// wake is the dispatcher's deadline. If no CPU is free, the next one that is finds it.
func (m *Machine) wake() {
	if m.stalls() || m.poller != nil && m.polling || m.poller == nil && len(m.idle) == 0 {
		return
	}
	m.d.Receive(m.w.now) // nothing: but a loop looks, and so the signal learns that no packet waits
	m.turn()
	m.assign()
}

// assign gives work to whoever is free. What was refused on the way, as taken off the queue too late, leaves at once.
func (m *Machine) assign() {
	if m.stalls() {
		return
	}
	m.share()
	if _, _, by := m.d.Unsent(); by != 0 {
		m.d.Flush(m.w.now)
		m.arm()
	}
}

func (m *Machine) share() {
	if m.poller != nil && !m.polling {
		m.polling = m.poller.packet() || m.poller.answer()
	}
	for i := len(m.idle) - 1; i >= 0; i-- {
		if m.idle[i].work() {
			m.idle = append(m.idle[:i], m.idle[i+1:]...)
		} else if !m.cfg.Steered {
			return // what one finds, all would
		}
	}
}

// charge is the cost of what the dispatcher has sent by itself since the last time.
func (m *Machine) charge() time.Duration {
	n := m.d.Counters()
	cost := time.Duration(n.RejectsSent-m.counted.rejects)*m.cfg.Costs.Reject + time.Duration(n.CreditUpdates-m.counted.updates)*m.cfg.Costs.Credit
	m.counted = counters{n.RejectsSent, n.CreditUpdates}
	return cost
}

// cpu is one CPU. It does one thing at a time, and what it does has its effect when it is over.
type cpu struct {
	m      *Machine
	life   int
	late   time.Duration // it was away during its step
	number int           // among those that run handlers
	queues *cpuQueues    // from which it takes packets, and its threads
	poll   polling       // with threads
	step   step
	in     *packet // when receiving
	job    *job    // when computing or answering
}

// step is what a CPU is at.
type step uint8

const (
	stepReceive step = iota + 1 // takes a packet in
	stepCompute                 // runs a handler
	stepAnswer                  // sends its reply
	stepPay                     // what the last step cost on top
)

// spend makes the CPU busy.
func (c *cpu) spend(s step, cost time.Duration) bool {
	c.step = s
	c.m.w.at(c.m.w.now.Add(cost), c)
	return true
}

// work finds something to do, and reports whether there is any.
func (c *cpu) work() bool {
	switch {
	case c.m.poller != nil:
		return c.resume() || c.request()
	case c.m.cfg.Threads:
		return c.resume() || c.schedule()
	}
	return c.packet() || c.resume() || c.request()
}

// packet takes the next packet, if there is one.
func (c *cpu) packet() bool {
	c.in = c.queues.nic.take()
	return c.in != nil && c.spend(stepReceive, time.Duration(messages(c.in.buf))*c.m.cfg.Costs.Receive)
}

// messages counts the messages of a packet.
func messages(payload []byte) (n int) {
	p, err := wire.ParsePacket(payload)
	if err != nil {
		return 1
	}
	for rest := p.Messages; len(rest) > 0; n++ {
		if _, rest, err = wire.NextMessage(rest); err != nil {
			break
		}
	}
	return max(n, 1)
}

// answer takes the next handler that has returned: a poller's work.
func (c *cpu) answer() bool {
	c.job = c.m.done.take()
	return c.job != nil && c.spend(stepAnswer, c.m.cfg.Costs.Send)
}

// resume goes on with a handler that waited for something else than a CPU.
func (c *cpu) resume() bool {
	c.job = c.m.ready.take()
	return c.job != nil && c.compute()
}

// request starts the next request.
func (c *cpu) request() bool {
	m := c.m
	r := m.d.Next(m.w.now)
	if r == nil {
		return false
	}
	c.job = m.begin(r)
	return c.compute()
}

// compute runs the handler until it waits for something or returns; false if it waits at once, and the CPU is free for the next.
func (c *cpu) compute() bool {
	for c.job != nil {
		j := c.job
		switch s := j.current(); {
		case s == nil:
			return c.returned()
		case s.Kind == StepCompute:
			return c.spend(stepCompute, s.For)
		case !c.m.wait(j, s):
			c.job = nil
			if c.work() {
				return true
			}
		}
	}
	return false
}

// returned ends the handler. Who answers is the poller, if there is one.
func (c *cpu) returned() bool {
	m := c.m
	c.job.request.Finished = m.w.now
	if m.poller == nil && !m.cfg.Threads {
		return c.spend(stepAnswer, m.cfg.Costs.Send)
	}
	if m.cfg.Threads {
		c.queues.put(thread{since: m.w.now, job: c.job})
		c.job = nil
		return c.work()
	}
	m.done.put(c.job)
	c.job = nil
	if !m.polling {
		m.polling = m.poller.answer()
	}
	return c.resume() || c.request()
}

// act is the end of what the CPU was at.
func (c *cpu) act(w *World) {
	m := c.m
	if c.life != m.life { // of a process that was killed
		if c.in != nil {
			w.net.lost++
			w.free(c.in)
		}
		return
	}
	if m.stalls() {
		w.at(m.stopped, c)
		return
	}
	if c.held() {
		return
	}
	switch c.step {
	case stepReceive:
		c.received(c.in)
		c.in = nil
	case stepCompute:
		m.computed += c.job.steps[c.job.at].For
		c.job.at++
		if c.compute() {
			m.assign()
			return
		}
	case stepAnswer:
		m.d.Complete(w.now, c.job.request)
		m.free(c.job)
		c.job = nil
		m.d.Receive(w.now) // nothing, as in wake
	case stepPay:
	}
	m.turn()
	if cost := m.charge(); cost > 0 {
		c.spend(stepPay, cost)
	} else {
		c.rest()
	}
	m.assign()
}

// rest makes the CPU free.
func (c *cpu) rest() {
	if c == c.m.poller {
		c.m.polling = false
		return
	}
	c.m.idle = append(c.m.idle, c)
}
