package middleware

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestThroughServer has flushes, hijacks and both versions of HTTP go through a real server.
func TestThroughServer(t *testing.T) {
	for _, version := range []int{1, 2} {
		s := newStand(t, Config{Permits: 1})
		mux := http.NewServeMux()
		mux.HandleFunc("/flush", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "first")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		})
		mux.HandleFunc("/hijack", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
		})
		server := httptest.NewUnstartedServer(s.Handler(mux))
		server.EnableHTTP2 = version == 2
		server.StartTLS()
		read := func(path string) (string, *http.Response) {
			response, err := server.Client().Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			return string(body), response
		}
		if body, r := read("/flush"); body != "first" || r.ProtoMajor != version {
			t.Errorf("%q over %s", body, r.Proto)
		}
		if version == 1 {
			if body, _ := read("/hijack"); body != "hi" {
				t.Errorf("hijacked: %q", body)
			}
		}
		s.Drain(true)
		if body, r := read("/flush"); r.StatusCode != 503 || body != "refused: draining\n" || version == 1 && !r.Close {
			t.Errorf("%d %q, close %t", r.StatusCode, body, r.Close)
		}
		server.Close()
	}
}

// TestDisconnect: a client that goes away while its request is in the handler.
func TestDisconnect(t *testing.T) {
	s := newStand(t, Config{Permits: 1})
	in, out := make(chan bool), make(chan bool)
	server := httptest.NewServer(s.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(in)
		<-r.Context().Done()
		close(out)
	})))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-in
	conn.Close()
	<-out
	server.Close() // waits for the handler's goroutine
	if n := s.Stats().Gate.Done; n != 1 {
		t.Errorf("%d done", n)
	}
}
