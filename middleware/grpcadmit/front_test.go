package grpcadmit

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/stillwater-rpc/stillwater/credit/admit"
	"github.com/stillwater-rpc/stillwater/hw/clock"
	"github.com/stillwater-rpc/stillwater/internal/seedtest"
	"github.com/stillwater-rpc/stillwater/middleware"
)

func TestIndexedOnly(t *testing.T) {
	for block, want := range map[string]bool{
		"": true, "\x82\x86\xbe": true, "\xff\x00\x82": true, "\xff\x80\x01\x82": true, "\xff": false, "\xff\x80": false,
		"\x82\x40": false, "\x82\x00": false, "\x82\x10": false, "\x3f\xe1\x1f": false,
	} {
		if got := indexedOnly([]byte(block)); got != want {
			t.Errorf("%x is %t", block, got)
		}
	}
}

// TestRefusalDecodes has another implementation read it, and its table stays empty.
func TestRefusalDecodes(t *testing.T) {
	for _, test := range []struct {
		v                      admit.Verdict
		status, back, explains string
	}{
		{admit.Verdict{Reason: admit.ReasonOverloaded, Advice: admit.AdviceDoNotRetry, RetryAfter: time.Second}, "8", "-1", "refused: overloaded"},
		{admit.Verdict{Reason: admit.ReasonMethodRate, RetryAfter: 1500 * time.Microsecond}, "14", "2", "refused: method's rate"},
		{admit.Verdict{Reason: admit.ReasonDraining}, "14", "", "refused: draining"},
	} {
		f := http2.NewFramer(nil, bytes.NewReader(appendRefusal(nil, 7, test.v)))
		f.ReadMetaHeaders = hpack.NewDecoder(0, nil)
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		h := frame.(*http2.MetaHeadersFrame)
		got := map[string]string{}
		for _, field := range h.Fields {
			got[field.Name] = field.Value
		}
		if !h.StreamEnded() || h.StreamID != 7 || got[":status"] != "200" || got["content-type"] != "application/grpc" || got["grpc-status"] != test.status ||
			got["grpc-message"] != test.explains || got[pushbackKey] != test.back {
			t.Errorf("%v: %v", test.v, got)
		}
	}
}

// TestBoundary cuts frames everywhere: only where one ends and none has begun, another can be written.
func TestBoundary(t *testing.T) {
	var all []byte
	ends := map[int]bool{0: true}
	for _, size := range []int{0, 1, 8, 9, 10, 300} {
		all = appendFrame(all, frameData, 0, 1, make([]byte, size))
		ends[len(all)] = true
	}
	for step := 1; step <= 20; step++ {
		var b boundary
		for at := 0; at < len(all); {
			n := min(step, len(all)-at)
			b.write(all[at : at+n])
			at += n
			if b.between() != ends[at] {
				t.Fatalf("between frames at %d, in steps of %d: %t", at, step, b.between())
			}
		}
	}
}

// dialogue is what a client sends: some known requests, some new ones, and other frames.
func dialogue(rng *rand.Rand) []byte {
	b := []byte(clientPreface)
	b = appendFrame(b, 4, 0, 0, make([]byte, 6))
	for stream := uint32(1); stream < 60; stream += 2 {
		block := [][]byte{{0x82, 0x86, 0xbe}, {0x82, 0x86, 0xbf}, {0x82, 0x41, 1, 'x'}, bytes.Repeat([]byte{0x82}, blockMax+1)}[min(rng.IntN(12), 3)]
		end := byte(rng.IntN(3) / 2 * flagEndStream)
		b = appendFrame(b, frameHeaders, flagEndHeaders|end, stream, block)
		for end == 0 {
			end = byte(rng.IntN(2) * flagEndStream)
			b = appendFrame(b, frameData, end, stream, make([]byte, rng.IntN(3000)))
		}
		if rng.IntN(5) == 0 {
			b = appendFrame(b, frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, 1))
		}
	}
	return b
}

// play has a front filter what is sent, in pieces, and the tap handle see all that is let through between two of them.
func play(f *front, sent []byte, piece func() int) (seen, replies []byte) {
	var raw, clean []byte
	for len(sent) > 0 {
		n := min(piece(), len(sent))
		raw = append(raw, sent[:n]...)
		sent = sent[n:]
		raw, clean = f.filter(nil, raw, func(float64) clock.Time { return 0 })
		seen = append(seen, clean...)
		for len(f.passed) > 0 {
			p := f.next()
			p.pass.Leave()
			f.learn(p.block, middleware.Arrival{})
		}
		f.settle()
		replies = append(replies, f.send()...)
	}
	return seen, replies
}

// TestFrontCuts: what is sent is let through byte for byte while nothing is refused, and else all but whole streams is, each of which is answered. However it
// is cut.
func TestFrontCuts(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 200 {
		sent := dialogue(rng)
		size := 1 + rng.IntN(4000)
		open := middleware.New(middleware.Config{Delay: func(clock.Time) time.Duration { return 0 }})
		seen, replies := play(newFront(open), sent, func() int { return 1 + rng.IntN(size) })
		if !bytes.Equal(seen, sent) || len(replies) != 0 {
			t.Fatalf("%d of %d bytes came through, %d were answered", len(seen), len(sent), len(replies))
		}
		if err := open.Audit(); err != nil || open.Stats().Running+open.Stats().Waiting != 0 {
			t.Fatal(err)
		}
		shut := middleware.New(middleware.Config{Delay: func(clock.Time) time.Duration { return 0 }})
		shut.Drain(true)
		seen, replies = play(newFront(shut), sent, func() int { return 1 + rng.IntN(size) })
		through, answered := streams(t, seen[len(clientPreface):]), streams(t, replies)
		for stream := range streams(t, sent[len(clientPreface):]) {
			if through[stream] == answered[stream] {
				t.Fatalf("stream %d: let through %t, answered %t", stream, through[stream], answered[stream])
			}
		}
	}
}

// streams are those that have headers.
func streams(t *testing.T, b []byte) map[uint32]bool {
	found := map[uint32]bool{}
	for len(b) > 0 {
		h := parseFrameHeader(b)
		if h.kind == frameHeaders {
			found[h.stream] = true
		} else if h.kind == frameData && !found[h.stream] {
			t.Fatalf("data of stream %d without its headers", h.stream)
		}
		b = b[frameHeaderBytes+h.length:]
	}
	return found
}

// TestSettle: what gRPC did not hand to the tap handle has its pass given back, and nothing is known any more.
func TestSettle(t *testing.T) {
	c := middleware.New(middleware.Config{Delay: func(clock.Time) time.Duration { return 0 }})
	defer c.Close()
	f := newFront(c)
	f.preface = 0
	block := []byte{0x82}
	f.known[string(block)] = known{}
	f.filter(nil, appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, block), func(float64) clock.Time { return 0 })
	if s := c.Stats(); s.Running != 1 || len(f.passed) != 1 {
		t.Fatalf("%d run, %d on their way", s.Running, len(f.passed))
	}
	f.settle()
	if s := c.Stats(); s.Running != 0 || len(f.passed) != 0 || len(f.known) != 0 {
		t.Errorf("%d run, %d on their way, %d known", s.Running, len(f.passed), len(f.known))
	}
}

// TestEnd: a connection that is closed under way leaves nothing, and takes nothing any more.
func TestEnd(t *testing.T) {
	c := middleware.New(middleware.Config{Delay: func(clock.Time) time.Duration { return 0 }})
	f := newFront(c)
	f.preface = 0
	f.known["\x82"] = known{}
	for stream := uint32(1); stream < 9; stream += 2 {
		f.filter(nil, appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, stream, []byte{0x82}), func(float64) clock.Time { return 0 })
		if stream == 3 {
			f.end()
		}
	}
	if s := c.Stats(); s.Running+s.Waiting != 0 || s.Gate.Arrived != 4 {
		t.Errorf("%+v", s)
	}
}

// FuzzFront: nothing that a client sends makes it panic, or hold what it should give back.
func FuzzFront(f *testing.F) {
	f.Add(dialogue(rand.New(rand.NewPCG(1, 1))), uint16(100))
	f.Add([]byte(clientPreface+"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x82"), uint16(1))
	f.Fuzz(func(t *testing.T, sent []byte, size uint16) {
		c := middleware.New(middleware.Config{Delay: func(clock.Time) time.Duration { return 0 }})
		front := newFront(c)
		seen, _ := play(front, sent, func() int { return 1 + int(size) })
		if len(seen) > len(sent) || c.Stats().Running+c.Stats().Waiting != 0 || len(front.refused) != 0 || len(front.known) > knownMax {
			t.Errorf("%d bytes of %d, %+v", len(seen), len(sent), c.Stats())
		}
	})
}

// BenchmarkRefusal is a request that is refused in front of gRPC, but for the system calls.
func BenchmarkRefusal(b *testing.B) {
	c := middleware.New(middleware.Config{Delay: func(clock.Time) time.Duration { return 0 }, Log: slog.New(slog.DiscardHandler)})
	c.Shed(1)
	f := newFront(c)
	f.preface = 0
	f.known["\x82\x86"] = known{}
	var sent, clean []byte
	b.ReportAllocs()
	for b.Loop() {
		stream := f.last + 2
		sent = appendFrame(sent[:0], frameHeaders, flagEndHeaders, stream, []byte("\x82\x86"))
		sent = appendFrame(sent, frameData, flagEndStream, stream, []byte("payload"))
		_, clean = f.filter(clean[:0], sent, func(float64) clock.Time { return 0 })
		f.send()
	}
	if len(clean) != 0 {
		b.Error("it came through")
	}
}
