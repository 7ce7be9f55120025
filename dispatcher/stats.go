package dispatcher

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/credit/client"
)

// Stats counts since the dispatcher was made. Each packet and each request that goes no further is counted once, where it ended and why.
type Stats struct {
	PacketsReceived uint64 `json:"packets_received_count"`
	PacketsSent     uint64 `json:"packets_sent_count"`

	// Packets and messages that went nowhere.
	Malformed            uint64 `json:"malformed_count"`
	WrongPeer            uint64 `json:"wrong_peer_count"`
	UnknownConnection    uint64 `json:"unknown_connection_count"`
	UnknownSession       uint64 `json:"unknown_session_count"`
	UnknownMessages      uint64 `json:"unknown_message_count"`
	NotServing           uint64 `json:"not_serving_count"`
	TooMany              uint64 `json:"too_many_count"` // connections or sessions beyond their bound
	NoBuffer             uint64 `json:"no_buffer_count"`
	SmallAnswersHeldBack uint64 `json:"small_answers_held_back_count"`
	Retries              uint64 `json:"retry_count"` // first contacts asked to prove their address

	// The server's requests: offered = admitted + rejected at the door; admitted = completed + rejected later + abandoned + pending.
	// Rejected counts both, at the door and later; RejectedLate only these.
	Offered       uint64                  `json:"offered_count"`
	Admitted      uint64                  `json:"admitted_count"`
	Completed     uint64                  `json:"completed_count"`
	Failed        uint64                  `json:"failed_count"` // of the completed: error, panic, reply too large
	Rejected      [rejectReasonMax]uint64 `json:"rejected_counts"`
	RejectedLate  uint64                  `json:"rejected_late_count"` // expired, cancelled or shed in the queue, unstarted
	Refused       uint64                  `json:"refused_count"`       // no credit or no slot: no request at all
	Unasked       uint64                  `json:"unasked_count"`       // of the offered: came without a credit, by invitation
	Abandoned     uint64                  `json:"abandoned_count"`     // in the queue when its client gave it up or ended its session: never started
	Interrupted   uint64                  `json:"interrupted_count"`   // cancelled by their clients while their handlers ran
	Retransmitted uint64                  `json:"retransmitted_count"` // requests that arrived marked so
	Duplicates    uint64                  `json:"duplicate_count"`     // known already: answered busy or from the cache
	Stale         uint64                  `json:"stale_count"`         // older than what the session has seen: ignored
	Probes        uint64                  `json:"probe_count"`
	CreditUpdates uint64                  `json:"credit_update_count"`
	RejectsSent   uint64                  `json:"reject_sent_count"` // messages: refusals of any kind, and those that were told again
	Busy          time.Duration           `json:"busy_ns"`           // in handlers
	RequestWait   time.Duration           `json:"request_wait_ns"`   // of the completed, in the request queue
	Updates       uint64                  `json:"pool_update_count"`
	Cuts          uint64                  `json:"pool_cut_count"` // of the updates: the pool became smaller
	DelaySum      time.Duration           `json:"delay_ns_sum"`   // of the signal at each pool update
	DelayMax      time.Duration           `json:"delay_ns_max"`

	// The client's calls: calls = sum of outcomes + live ones.
	Calls           uint64             `json:"call_count"`
	RequestsSent    uint64             `json:"requests_sent_count"`
	Retransmissions uint64             `json:"retransmission_count"`
	ProbesSent      uint64             `json:"probes_sent_count"`
	OverLimit       uint64             `json:"over_limit_count"` // sent beyond a limit that had moved
	LateAnswers     uint64             `json:"late_answer_count"`
	PeersLost       uint64             `json:"peers_lost_count"`
	Outcomes        [outcomeMax]uint64 `json:"outcome_counts"`
	// What guards did about the attempts of calls. RequestsSent are all attempts, and so what was sent again after it had failed.
	client.AttemptCounts
}

const (
	rejectReasonMax = 16
	outcomeMax      = 16
)

// RejectedAll is the number of requests refused with an answer, whatever the reason.
func (s *Stats) RejectedAll() (n uint64) {
	for _, v := range s.Rejected {
		n += v
	}
	return n
}

// Ended is the number of calls that have their outcome.
func (s *Stats) Ended() (n uint64) {
	for _, v := range s.Outcomes {
		n += v
	}
	return n
}

// Snapshot is what an operator watches: the counters, and the state of the moment.
type Snapshot struct {
	Stats
	Port PortStats `json:"port"`
	// Admission is what the door's policies did, whose refusals are among the rejected.
	Admission admit.Counters `json:"admission"`

	Pool      uint64 `json:"credit_pool_count"`   // C_total
	Issued    uint64 `json:"credit_issued_count"` // C_issued, the sum over sessions
	Sessions  int    `json:"session_count"`
	Drained   uint64 `json:"drained_session_count"`
	Queued    int    `json:"queued_count"`
	InService int    `json:"in_service_count"`
	// InServiceMax bounds it: the workers, or less while requests wait in their handlers and end too late: see ServeConfig.AdaptWorkers.
	InServiceMax int           `json:"in_service_count_max"`
	Delay        time.Duration `json:"delay_ns"`
	TargetDelay  time.Duration `json:"target_delay_ns"`
	Service      time.Duration `json:"service_ns_mean"` // learnt
	RTT          time.Duration `json:"rtt_ns_smoothed"`
	Connections  int           `json:"connection_count"`
}

// Counters are the dispatcher's own: for its owner to look at often, where a Snapshot would be a copy too many.
func (d *Dispatcher) Counters() *Stats { return &d.stats }

// Queued is the number of requests that wait for a worker.
func (d *Dispatcher) Queued() int { return d.server.queue.live + d.server.parked }

// Snapshot reads the counters and the present state.
func (d *Dispatcher) Snapshot() Snapshot {
	s := Snapshot{
		Stats: d.stats, Port: d.port.Stats(), Admission: d.server.door.Counters(), Queued: d.Queued(), InService: d.server.inService.now, InServiceMax: d.server.inService.limit,
		Delay: d.Delay(), TargetDelay: d.server.TargetDelay, Service: d.server.service.Mean(),
		RTT: d.rtt.Smoothed(), Connections: d.conns.Len(),
	}
	if d.server.ledger != nil {
		t := d.server.ledger.Totals()
		s.Pool, s.Issued, s.Sessions, s.Drained = t.Pool, t.Issued, d.server.peers.Len(), t.Drained
	}
	return s
}

// Add makes the snapshot that of several dispatchers of one endpoint, of which it was one so far. Counts and sums add up; of the delays and the round
// trip the largest counts, and of the mean service time the mean over their requests.
func (s *Snapshot) Add(other *Snapshot) {
	if all := s.Completed + other.Completed; all > 0 {
		s.Service = time.Duration((float64(s.Service)*float64(s.Completed) + float64(other.Service)*float64(other.Completed)) / float64(all))
	}
	s.Stats.add(&other.Stats)
	s.Port.add(&other.Port)
	s.Admission.Add(&other.Admission)
	s.Pool += other.Pool
	s.Issued += other.Issued
	s.Sessions += other.Sessions
	s.Drained += other.Drained
	s.Queued += other.Queued
	s.InService += other.InService
	s.InServiceMax += other.InServiceMax
	s.Connections += other.Connections
	s.Delay = max(s.Delay, other.Delay)
	s.TargetDelay = max(s.TargetDelay, other.TargetDelay)
	s.RTT = max(s.RTT, other.RTT)
}
