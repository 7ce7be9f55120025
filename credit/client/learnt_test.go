package client

import (
	"testing"
	"time"
)

func TestLearnt(t *testing.T) {
	var l Learnt
	l.Sample(-us)
	if l.Mean() != 0 {
		t.Fatal("a negative sample was believed")
	}
	l.Sample(10 * us)
	if l.Mean() != 10*us {
		t.Fatalf("the first sample is the mean: %v", l.Mean())
	}
	l.Sample(40 * time.Millisecond) // counts as eight means
	if got := l.Mean(); got < 14*us || got > 15*us {
		t.Fatalf("an outlier made it %v", got)
	}
	for range 200 {
		l.Sample(30 * us)
	}
	if got := l.Mean(); got < 29*us || got > 31*us {
		t.Fatalf("after 200 samples of 30 us: %v", got)
	}
}

// A mean that is far too large is doubted away by those whom it refuses; one of a nanosecond can grow.
func TestLearntUnlearns(t *testing.T) {
	var l Learnt
	l.Sample(10 * time.Millisecond)
	refusals := 0
	for ; l.Mean() > 100*us; refusals++ {
		l.Doubt()
	}
	if refusals > 400 {
		t.Errorf("%d refusals until it gives in", refusals)
	}
	var small Learnt
	small.Sample(1)
	for range 400 {
		small.Sample(10 * us)
	}
	if small.Mean() < 9*us {
		t.Errorf("from a nanosecond it grew to %v", small.Mean())
	}
}
