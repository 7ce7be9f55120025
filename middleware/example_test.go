package middleware_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/middleware"
)

// A table that one goroutine may change at a time, in a handler of package runtime or of any other. Callers of what only reads it do not wait for those that change it.
func ExampleControl_Enter() {
	table := make(map[string]int)
	lock := middleware.New(middleware.Config{SLO: 10 * time.Millisecond, Permits: 1})
	defer lock.Close()
	change := func(ctx context.Context, key string) error {
		p, err := lock.Enter(ctx)
		if err != nil {
			return err // it would have been too late
		}
		defer p.Done(true)
		table[key]++
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(change(ctx, "a"), table["a"])
	cancel()
	fmt.Println(change(ctx, "a"), table["a"])
	// Output:
	// <nil> 1
	// context canceled 1
}
