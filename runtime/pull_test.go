package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// itemOf is the item with a number: of any size up to the largest, empty ones included, and it says which it is.
func itemOf(i int) []byte {
	return bytes.Repeat([]byte{byte(i)}, [...]int{3, 0, 200, sw.FeedItemMax, 1}[i%5])
}

// TestPullTakesWhatItAskedFor has the consumer ask for a few items at a time: it gets them all, in order, and its producer is never further ahead of it than the feed holds.
func TestPullTakesWhatItAskedFor(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		const items, capacity = 200, 8
		feed := sw.NewFeed(capacity)
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"items": feed.Serve})
		ctx := timeout(t, guard)
		var put, taken atomic.Int64
		produced := make(chan error, 1)
		go func() {
			for i := range items {
				if err := feed.Put(ctx, itemOf(i)); err != nil {
					produced <- err
					return
				}
				if ahead := put.Add(1) - taken.Load(); ahead > capacity {
					produced <- fmt.Errorf("%d items ahead of the consumer", ahead)
					return
				}
			}
			feed.End()
			produced <- nil
		}()
		pull := cli.Pull("items")
		for i := 0; ; {
			if _, err := pull.Next(ctx); !errors.Is(err, sw.ErrNoDemand) {
				t.Fatalf("nothing asked for: %v", err)
			}
			n := 1 + i%7
			if err := pull.Request(int64(n)); err != nil {
				t.Fatal(err)
			}
			var err error
			for ; n > 0 && err == nil; n-- {
				var item []byte
				taken.Store(int64(i + 1)) // before the next pull says so
				if item, err = pull.Next(ctx); err == nil && !bytes.Equal(item, itemOf(i)) {
					t.Fatalf("item %d is %d bytes, %.5x", i, len(item), item)
				}
				i++
			}
			if errors.Is(err, io.EOF) {
				if i-1 != items {
					t.Errorf("%d items", i-1)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := within(t, "the producer is through", produced); err != nil {
			t.Error(err)
		}
		if err := pull.Request(0); !errors.Is(err, sw.ErrNoDemand) {
			t.Errorf("request(0): %v", err)
		}
		if err := feed.Put(ctx, nil); !errors.Is(err, sw.ErrFeedEnded) {
			t.Errorf("after the end: %v", err)
		}
		audit(t, srv.Endpoint(), cli.Endpoint())
	})
}

// TestPullWaits has a pull wait at the server for an item: one that is given up loses nothing.
func TestPullWaits(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		feed := sw.NewFeed(4)
		srv, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"items": feed.Serve})
		pull := cli.Pull("items")
		if err := pull.Request(2); err != nil {
			t.Fatal(err)
		}
		waits := func() bool { return statsOf(t, srv.Endpoint()).InService == 1 }
		idle := func() bool { return statsOf(t, srv.Endpoint()).InService == 0 }
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			_, err := pull.Next(ctx)
			ended <- err
		}()
		await(t, "the pull waits", waits)
		cancel()
		if err := within(t, "it is given up", ended); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		await(t, "its handler has returned", idle)

		go func() {
			item, err := pull.Next(timeout(t, guard))
			if err == nil && string(item) != "first" {
				err = fmt.Errorf("item %q", item)
			}
			ended <- err
		}()
		await(t, "the next one waits", waits)
		if err := feed.Put(context.Background(), []byte("first")); err != nil {
			t.Fatal(err)
		}
		if err := within(t, "it has an item", ended); err != nil {
			t.Error(err)
		}
		if pull.Wanted() != 1 {
			t.Errorf("%d wanted", pull.Wanted())
		}
	})
}

// TestPullCancel has the producer stop when the consumer wants no more.
func TestPullCancel(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		feed := sw.NewFeed(2)
		_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{"items": feed.Serve})
		ctx := timeout(t, guard)
		stopped := make(chan error, 1)
		go func() {
			for {
				if err := feed.Put(ctx, []byte("item")); err != nil {
					stopped <- err
					return
				}
			}
		}()
		pull := cli.Pull("items")
		if err := pull.Request(sw.Unbounded); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := pull.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
		other := cli.Pull("items")
		_ = other.Request(1)
		if _, err := other.Next(ctx); err == nil || !strings.Contains(err.Error(), "another consumer") {
			t.Errorf("another consumer: %v", err)
		}
		for range 2 {
			if err := pull.Cancel(ctx); err != nil {
				t.Errorf("cancelling: %v", err)
			}
		}
		if err := within(t, "the producer stops", stopped); !errors.Is(err, sw.ErrFeedCancelled) {
			t.Errorf("the producer: %v", err)
		}
		if _, err := pull.Next(ctx); !errors.Is(err, sw.ErrFeedCancelled) {
			t.Errorf("the consumer: %v", err)
		}
	})
}

// TestFeedBounds has items of the largest size, and one byte more; and what is no pull.
func TestFeedBounds(t *testing.T) {
	feed := sw.NewFeed(0)
	if err := feed.Put(context.Background(), make([]byte, sw.FeedItemMax+1)); !errors.Is(err, sw.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if err := feed.Put(context.Background(), make([]byte, sw.FeedItemMax)); err != nil {
		t.Error(err)
	}
	if err := feed.Put(timeout(t, time.Millisecond), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no room: %v", err)
	}
	var lie atomic.Pointer[[]byte]
	everywhere(t, func(t *testing.T, p place) {
		_, cli := start(t, p, sw.ServerConfig{SLO: calm}, map[string]sw.Handler{
			"items": sw.NewFeed(1).Serve,
			"lies": func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
				return append(reply, *lie.Load()...), nil
			},
			"many": func(_ context.Context, _ *sw.Request, reply []byte) ([]byte, error) {
				return append(reply, 0, 1, 'a', 1, 'b'), nil
			},
		})
		ctx := timeout(t, guard)
		for _, payload := range [][]byte{nil, make([]byte, 24), make([]byte, 25), make([]byte, 26), bytes.Repeat([]byte{9}, 25)} {
			if _, err := cli.Call(ctx, "items", payload, nil); err == nil {
				t.Errorf("%x is a pull", payload)
			}
		}
		many := cli.Pull("many")
		_ = many.Request(1)
		if _, err := many.Next(ctx); err == nil || !strings.Contains(err.Error(), "more items") {
			t.Errorf("two items for one: %v", err)
		}
		for _, answer := range [][]byte{{}, {2}, {0}, {0, 5}, {0, 2, 'a'}, {0, 1, 'a', 0x80}, {0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}} {
			lie.Store(&answer)
			pull := cli.Pull("lies")
			_ = pull.Request(5)
			if item, err := pull.Next(ctx); err == nil || !strings.Contains(err.Error(), "feed") {
				t.Errorf("%x: item %x, %v", answer, item, err)
			}
		}
	})
}
