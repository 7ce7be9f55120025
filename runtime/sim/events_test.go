package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// The slow twin is a list that is sorted whenever something is taken.
func TestHeapAgainstASortedList(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedtest.Seed(t), 0))
	var heap eventHeap
	var list []event
	for order := range uint64(20_000) {
		if rng.IntN(100) < 52 || len(list) == 0 {
			e := event{at: clock.Time(rng.IntN(500)), order: order}
			heap.push(e)
			list = append(list, e)
			continue
		}
		slices.SortFunc(list, func(a, b event) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		got, want := heap.pop(), list[0]
		list = list[1:]
		if got.at != want.at || got.order != want.order {
			t.Fatalf("got %d/%d, want %d/%d", got.at, got.order, want.at, want.order)
		}
	}
	if len(heap) != len(list) {
		t.Fatalf("%d left in the heap, %d in the list", len(heap), len(list))
	}
}
