// Package seedtest gives random tests their seed, so that every failure replays.
//
// The seed is TEST_SEED if that is in the environment, and a new one for each test if it is not. Either way it goes to the test's log,
// which go test prints when the test fails, and always with -v. To replay a failure, give it back to the one test that had it:
//
//	TEST_SEED=1234 go test -run '^TestOfTheFailure$' ./the/package
//
// The same seed makes the same choices on every machine; what a test takes from elsewhere (the scheduler, the kernel) does not replay.
package seedtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// variable is in decimal, or in the form of a Go literal (0x...). What is no number fails the test, which would otherwise pass with another
// seed than the one asked for.
const variable = "TEST_SEED"

// Seed returns the seed of a test and logs it. It is for those that pass a seed on; the others want [Rand].
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(variable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 0, 64); err != nil {
			t.Fatalf("%s: %v", variable, err)
		}
	}
	t.Logf("%s=%d", variable, seed)
	return seed
}

// Rand returns a source of random numbers that starts from the test's [Seed].
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 1))
}
