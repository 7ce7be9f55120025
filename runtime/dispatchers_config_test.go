package runtime

import (
	"testing"
)

// TestShare has the parts come to the whole, wherever there is at least one for each.
func TestShare(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64} {
		for _, whole := range []int{1, 2, 7, 64, 256, 1 << 20} {
			sum, least, most := 0, whole, 0
			for i := range n {
				part := share(whole, i, n)
				sum, least, most = sum+part, min(least, part), max(most, part)
			}
			if sum != max(whole, n) || most-least > 1 || least < 1 {
				t.Errorf("%d in %d parts of %d to %d: they come to %d", whole, n, least, most, sum)
			}
		}
	}
}

// TestDescribe says in words what the dispatchers are, and why they are not what was asked for.
func TestDescribe(t *testing.T) {
	for _, test := range []struct {
		count      int
		dedicated  bool
		processors int
		want       string
	}{
		{1, false, 1, ""},
		{1, true, 2, ", dedicated dispatcher"},
		{4, false, 4, ", 4 dispatchers"},
		{4, false, 3, ", 4 dispatchers (GOMAXPROCS is 3, so no more than that many run at once, and the others wait)"},
		{2, true, 3, ", 2 dedicated dispatchers"},
		{2, true, 2, ", 2 shared dispatchers (dedicated needs 3 Ps, one more than dispatchers, and GOMAXPROCS is 2)"},
	} {
		cfg := EndpointConfig{Dispatchers: test.count, Dedicated: test.dedicated}
		if got := cfg.describe(test.processors); got != test.want {
			t.Errorf("%d, dedicated %v, on %d Ps: %q", test.count, test.dedicated, test.processors, got)
		}
	}
}
