package baseline

import (
	"time"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// windowMin is the least that a client may have outstanding: with many clients that alone is an overload, as figure 1 of the paper shows.
const windowMin = 1.0

// window is a client's TCP-like window of outstanding requests: additive increase, multiplicative decrease (Chiu and Jain, 1989). The whole of the
// scheme is at the client.
type window struct {
	freely
	slo    time.Duration
	most   float64
	size   float64
	halved clock.Time
}

func makeWindow(p Params, s *Scheme) {
	s.NewController = openDoor(p)
	slo, most := p.SLO, float64(p.Slots)
	s.NewPolicy = func() client.Policy { return &window{slo: slo, most: most, size: windowMin} }
}

// CanSend compares with the window. One may always be outstanding, so an answer, or its absence, always comes to change it.
func (w *window) CanSend(_ clock.Time, outstanding int) (bool, clock.Time) {
	return outstanding < int(w.size), 0
}

// Answered halves the window, or lets it grow by one a round trip. As in TCP one congestion halves it once: not what was sent before.
func (w *window) Answered(now clock.Time, a client.Answer) {
	if a.Latency <= w.slo && !a.Rejected && !a.Lost {
		w.size = min(w.size+1/w.size, w.most)
		return
	}
	if now.Add(-a.Latency) >= w.halved {
		w.size = max(w.size/2, windowMin)
		w.halved = now
	}
}
