package session

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// random prints the seed of a random test and takes it from TEST_SEED, so that every failure replays.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
