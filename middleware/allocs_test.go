//go:build !race

package middleware

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stillwater-rpc/stillwater/credit/admit"
)

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// TestAllocations: what is let in costs none, with or without headers; of what is refused, those of the answer.
func TestAllocations(t *testing.T) {
	s := newStand(t, Config{})
	h := s.Handler(nothing)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set(CriticalityHeader, "sheddable")
	r.Header.Set(AttemptHeader, "2")
	w := httptest.NewRecorder()
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
	s.Shed(1)
	if n := testing.AllocsPerRun(1000, func() { s.Arrive(Arrival{Level: admit.Critical}) }); n != 0 {
		t.Errorf("%v allocations a decision against it", n)
	}
}

func BenchmarkHandler(b *testing.B) {
	c := New(Config{})
	defer c.Close()
	h, r, w := c.Handler(nothing), httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
