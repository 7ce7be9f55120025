package sim

import (
	"slices"
	"testing"

	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
)

// The slow twin is a list that is sorted whenever something is taken.
func TestFutureAgainstASortedList(t *testing.T) {
	rng := seedtest.Rand(t)
	var f future
	var list []event
	var latest clock.Time
	for order := range uint64(20_000) {
		if rng.IntN(100) < 52 || len(list) == 0 {
			e := event{at: clock.Time(rng.IntN(500)), order: order}
			ordered := rng.IntN(3) == 0
			if ordered && rng.IntN(10) > 0 { // as a rule they are
				latest++
				e.at = latest / 8
			}
			f.push(e, ordered)
			list = append(list, e)
			continue
		}
		slices.SortFunc(list, func(a, b event) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		want := list[0]
		if _, ok := f.next(want.at - 1); ok {
			t.Fatalf("something is nearer than %d", want.at)
		}
		got, ok := f.next(want.at)
		list = list[1:]
		if !ok || got.at != want.at || got.order != want.order {
			t.Fatalf("got %d/%d, want %d/%d", got.at, got.order, want.at, want.order)
		}
	}
	left := 0
	f.each(func(event) { left++ })
	if left != len(list) {
		t.Fatalf("%d left, %d in the list", left, len(list))
	}
}
