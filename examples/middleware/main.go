// Command middleware is a plain HTTP server with overload control in front of its handlers: it answers what it can in time, and says no to the rest at once.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/stillwater-rpc/stillwater/middleware"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "middleware:", err)
		os.Exit(1)
	}
}

const (
	service = 5 * time.Millisecond // a report takes so long, of a database that makes two at a time
	callers = 100
)

func run(ctx context.Context, out io.Writer) error {
	control := middleware.New(middleware.Config{
		SLO: 100 * time.Millisecond,
		Routes: map[string]middleware.Route{
			"GET /report": {InService: 2},
			"GET /health": {Exempt: true}, // a server that is busy is not dead
		},
	})
	defer control.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(service)
		io.WriteString(w, "42\n")
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "alive\n") })
	server := httptest.NewServer(control.Handler(mux)) // yours: http.ListenAndServe(address, control.Handler(mux))
	defer server.Close()

	var group sync.WaitGroup
	codes := make(chan int, callers)
	for range callers {
		group.Go(func() { codes <- get(ctx, server.URL+"/report") })
	}
	group.Wait()
	close(codes)
	count := map[int]int{}
	for code := range codes {
		count[code]++
	}
	stats := control.Stats()
	fmt.Fprintf(out, "%d reports, %d refused, %d failed; health %d; %d arrived, %d run\n",
		count[200], count[503], callers-count[200]-count[503], get(ctx, server.URL+"/health"), stats.Gate.Arrived, stats.Running)
	return nil
}

// get is the status code, or 0.
func get(ctx context.Context, url string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
