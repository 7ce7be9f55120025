package middleware

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/stillwater-rpc/stillwater/credit/admit"
)

// The headers of requests that are read, and that of a refusal.
const (
	CriticalityHeader = "X-Criticality"
	AttemptHeader     = "X-Envoy-Attempt-Count"          // 1 for the first
	TimeoutHeader     = "X-Envoy-Expected-Rq-Timeout-Ms" // that of the proxy in front
	// DoNotRetryHeader is in each refusal after which another attempt would only add to the overload. Envoy sees it and does not retry.
	DoNotRetryHeader = "X-Envoy-Overloaded"
)

// Handler lets requests through to next as the control decides. The response writer is next's own, so http.ResponseController, Flush and Hijack work as without it. A
// handler that panics, or whose client is gone, gives its permit back like any other.
func (c *Control) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pass, v := c.Arrive(c.arrival(r))
		if v.OK {
			var err error
			if v, err = pass.Wait(r.Context()); err != nil {
				// Nobody reads this if the client is gone. Silence would be a 200.
				v = admit.Verdict{Reason: admit.ReasonExpired, Advice: admit.AdviceDoNotRetry}
			}
		}
		if !v.OK {
			refuse(w, v)
			return
		}
		returned := false
		defer func() { pass.Done(returned && r.Context().Err() == nil) }()
		next.ServeHTTP(w, r)
		returned = true
	})
}

func (c *Control) arrival(r *http.Request) Arrival {
	a := Arrival{}
	if c.mux != nil {
		h, _ := c.mux.Handler(r)
		a.Lane, _ = h.(*Lane)
	}
	if c.config.Level != nil {
		a.Level = c.config.Level(r)
	} else {
		a.Level = ParseLevel(header(r.Header, CriticalityHeader))
	}
	if n := number(header(r.Header, AttemptHeader), 8); n > 0 {
		a.Attempt = uint8(n - 1)
	}
	a.Deadline, _ = r.Context().Deadline()
	if ms := number(header(r.Header, TimeoutHeader), 31); ms > 0 {
		if at := time.Now().Add(time.Duration(ms) * time.Millisecond); a.Deadline.IsZero() || at.Before(a.Deadline) {
			a.Deadline = at
		}
	}
	return a
}

// header is Header.Get for a name in its canonical form.
func header(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// number is 0 for what is none, or none of so many bits. An error would be an allocation.
func number(text string, bits int) uint64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return 0
	}
	return n
}

// ParseLevel reads a level as in X-Criticality; Unset for what it does not know.
func ParseLevel(text string) admit.Level {
	switch text {
	case "sheddable":
		return admit.Sheddable
	case "sheddable-plus":
		return admit.SheddablePlus
	case "critical":
		return admit.Critical
	case "critical-plus":
		return admit.CriticalPlus
	}
	return admit.Unset
}

// refuse answers a request that did not run.
func refuse(w http.ResponseWriter, v admit.Verdict) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Retry-After", seconds(v.RetryAfter))
	if v.Advice == admit.AdviceDoNotRetry {
		h.Set(DoNotRetryHeader, "true")
	}
	code := http.StatusServiceUnavailable
	switch v.Reason {
	case admit.ReasonClientRate, admit.ReasonMethodRate:
		code = http.StatusTooManyRequests
	case admit.ReasonDraining:
		h.Set("Connection", "close") // the next request should go to another server; for HTTP/2 net/http makes it a GOAWAY
	}
	w.WriteHeader(code)
	io.WriteString(w, "refused: ")
	io.WriteString(w, v.Reason.String())
	io.WriteString(w, "\n")
}

// seconds is the value of Retry-After (RFC 9110, section 10.2.3), which knows whole seconds only. One is the least that it can say.
func seconds(d time.Duration) string {
	s := (d + time.Second - 1) / time.Second
	if s <= 1 {
		return "1"
	}
	return strconv.FormatInt(int64(s), 10)
}
