//go:build linux

package cpu

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// restore gives the process back the CPUs that it had.
func restore(t *testing.T) []int {
	t.Helper()
	before, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if len(before) == 0 || !slices.IsSorted(before) {
		t.Fatalf("this thread may run on %v", before)
	}
	t.Cleanup(func() {
		if err := PinProcess(before...); err != nil {
			t.Error(err)
		}
		checkAll(t, before)
	})
	return before
}

// checkAll compares the affinity of each thread of the process.
func checkAll(t *testing.T, want []int) {
	t.Helper()
	tasks, err := os.ReadDir(taskDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		got, err := allowedOf(tid)
		if err != nil {
			continue // ended meanwhile
		}
		if !slices.Equal(got, want) {
			t.Errorf("thread %d of %d may run on %v, want %v", tid, len(tasks), got, want)
		}
	}
}

// TestPinProcess pins while other threads are born, and checks old, young and later ones.
func TestPinProcess(t *testing.T) {
	before := restore(t)
	want := before[len(before)-1:]
	stop := make(chan struct{})
	var threads sync.WaitGroup
	hold := func(count int) {
		for range count {
			threads.Go(func() { // a locked goroutine that blocks holds a thread of its own
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				<-stop
			})
		}
	}
	hold(8)
	births := make(chan struct{})
	threads.Go(func() {
		defer close(births)
		hold(8)
	})
	if err := PinProcess(want...); err != nil {
		t.Fatal(err)
	}
	<-births
	hold(8)
	checkAll(t, want)
	got, err := Allowed()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("allowed: %v, %v; want %v", got, err, want)
	}
	close(stop)
	threads.Wait()
}

func TestPinProcessRefuses(t *testing.T) {
	before := restore(t)
	for _, test := range []struct {
		name string
		cpus []int
		want string
	}{
		{"none", nil, "no CPU given"},
		{"negative", []int{-1}, "CPU -1 is not in 0.."},
		{"beyond the interface", []int{cpuCountMax}, "is not in 0.."},
		{"one that is not there", []int{cpuCountMax - 1}, "none of them is online"},
		{"one of two is not there", []int{before[0], cpuCountMax - 1}, "can be had"},
	} {
		err := PinProcess(test.cpus...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q in it", test.name, err, test.want)
		}
	}
}
