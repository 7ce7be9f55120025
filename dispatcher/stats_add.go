package dispatcher

// add makes the counters those of two dispatchers together.
func (s *Stats) add(other *Stats) {
	s.PacketsReceived += other.PacketsReceived
	s.PacketsSent += other.PacketsSent
	s.Malformed += other.Malformed
	s.WrongPeer += other.WrongPeer
	s.UnknownConnection += other.UnknownConnection
	s.UnknownSession += other.UnknownSession
	s.UnknownMessages += other.UnknownMessages
	s.NotServing += other.NotServing
	s.TooMany += other.TooMany
	s.NoBuffer += other.NoBuffer
	s.SmallAnswersHeldBack += other.SmallAnswersHeldBack
	s.Retries += other.Retries
	s.Offered += other.Offered
	s.Admitted += other.Admitted
	s.Completed += other.Completed
	s.Failed += other.Failed
	for i, n := range other.Rejected {
		s.Rejected[i] += n
	}
	s.RejectedLate += other.RejectedLate
	s.Refused += other.Refused
	s.Abandoned += other.Abandoned
	s.Retransmitted += other.Retransmitted
	s.Duplicates += other.Duplicates
	s.Stale += other.Stale
	s.Probes += other.Probes
	s.CreditUpdates += other.CreditUpdates
	s.RejectsSent += other.RejectsSent
	s.Busy += other.Busy
	s.RequestWait += other.RequestWait
	s.Updates += other.Updates
	s.Cuts += other.Cuts
	s.DelaySum += other.DelaySum
	s.DelayMax = max(s.DelayMax, other.DelayMax)
	s.Calls += other.Calls
	s.RequestsSent += other.RequestsSent
	s.Retransmissions += other.Retransmissions
	s.ProbesSent += other.ProbesSent
	s.OverLimit += other.OverLimit
	s.LateAnswers += other.LateAnswers
	s.PeersLost += other.PeersLost
	for i, n := range other.Outcomes {
		s.Outcomes[i] += n
	}
}

// add makes the counters those of two ports together.
func (s *PortStats) add(other *PortStats) {
	s.Received += other.Received
	s.Sent += other.Sent
	s.ReceiveDropped += other.ReceiveDropped
	s.SendDropped += other.SendDropped
	s.NoBuffer += other.NoBuffer
	s.Kicks += other.Kicks
	s.EmptyPolls += other.EmptyPolls
	s.PassedOn += other.PassedOn
	s.LeftToKernel += other.LeftToKernel
	s.HandedOver += other.HandedOver
	s.HandoverDropped += other.HandoverDropped
	s.QueuesUnserved += other.QueuesUnserved
	s.Captured += other.Captured
	s.CaptureMissed += other.CaptureMissed
}
