package baseline

import (
	"math/rand/v2"

	"github.com/stillwater-rpc/stillwater/credit/client"
	"github.com/stillwater-rpc/stillwater/hw/clock"
)

// dagorClient is DAGOR's half at the client: it sends nothing that the server, as it last said, would reject.
type dagorClient struct {
	freely
	rng rand.PCG
	cut uint8 // zero before the first answer
}

// Admit gives who has none a random priority, 1 to 128, and drops what is above the last cut seen.
func (d *dagorClient) Admit(_ clock.Time, priority uint8) (uint8, bool) {
	if priority == 0 {
		priority = 1 + uint8(d.rng.Uint64()>>57) // seven bits
	}
	return priority, d.cut == 0 || priority <= d.cut
}

// Answered notes the cut.
func (d *dagorClient) Answered(_ clock.Time, a client.Answer) {
	if a.Level != 0 {
		d.cut = a.Level
	}
}
