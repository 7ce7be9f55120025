package paper

import (
	"context"
	"time"
)

// Runner simulates points. It must be safe for concurrent use, and must give the same result for the same point and seed.
type Runner interface {
	// Run simulates p and returns what was measured after the warm-up, or ctx's error soon after ctx ends. The cost of receiving,
	// sending, refusing and granting is the runner's, and the same for every point.
	Run(ctx context.Context, p Point, seed uint64) (Result, error)
}

// Result is what one run showed in its measured time. A value that the scheme does not have, or of no request at all, is NaN or 0:
// latencies are NaN where nothing was answered.
type Result struct {
	GoodputPerS    float64 // answered within the SLO, from when the request arose at its client
	ThroughputPerS float64 // answered at all
	CapacityPerS   float64 // what the server could serve with nothing refused and nothing else to do

	LatencyNsP50 float64 // of answered requests, from when they arose, the wait at the client included
	LatencyNsP99 float64

	DropRatioServer  float64 // rejected or dropped by the server, of the requests that reached it
	DropRatioClient  float64 // expired or refused at the client, of those that arose
	RxPerS           float64 // packets that the server received, of whatever kind
	TxPerS           float64 // packets that it sent
	RejectDelayNsAvg float64 // from arising to the client's notice of a reject; 0 without any

	Series []WindowResult // one per Point.Window, if that is not 0
}

// WindowResult is one window of the measured time.
type WindowResult struct {
	End              time.Duration // after the warm-up
	GoodputPerS      float64
	LatencyNsP99     float64 // of what was answered in the window; NaN without any
	RejectDelayNsAvg float64 // 0 without any reject
}
