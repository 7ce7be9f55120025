//go:build linux

package lab_test

import (
	"os"
	"reflect"
	"syscall"
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
)

// chainOf starts so many children in a row.
func chainOf(t *testing.T, nodes int) (*lab.Chain, error) {
	t.Helper()
	all := make([]lab.ChainNode, nodes)
	for i := range all {
		all[i] = lab.ChainNode{Role: string(rune('a' + i)), Node: childConfig("child", "child").Server}
	}
	chain, err := lab.StartChain(testContext(t), 0, all...)
	if err == nil {
		t.Cleanup(func() { _ = chain.Close() }) // what Close says is checked where the test means it
	}
	return chain, err
}

// Each child is in a namespace of its own, and talks to the next one, also when that was killed and came back.
func TestChainTalks(t *testing.T) {
	labtest.Require(t)
	chain, err := chainOf(t, 4)
	if err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]bool{currentNamespace(t): true}
	var all []whereabouts
	for i, process := range chain.Processes {
		var w whereabouts
		call(t, process, "whereabouts", nil, &w)
		all = append(all, w)
		if w.PID != process.PID() || !reflect.DeepEqual(w.Place, process.Place()) || w.Place.Role != string(rune('a'+i)) {
			t.Errorf("child %d says %+v, the parent %+v", i, w, process.Place())
		}
		if namespaces[w.Namespace] {
			t.Errorf("child %d is not in a namespace of its own", i)
		}
		namespaces[w.Namespace] = true
		if err := chain.In(i, func() error {
			if got := currentNamespace(t); got != w.Namespace {
				t.Errorf("node %d: in %s, and its child in %s", i, got, w.Namespace)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	last := chain.Processes[3]
	if last.Place().Below != nil {
		t.Errorf("below the last one is %+v", last.Place().Below)
	}
	talkDown(t, chain)
	if err := last.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := last.Wait(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := last.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	talkDown(t, chain)
	for range 2 {
		if err := chain.Close(); err != nil {
			t.Error(err)
		}
	}
	mustBeGone(t, all...)
}

// talkDown has each child send a datagram to the next one and back.
func talkDown(t *testing.T, chain *lab.Chain) {
	t.Helper()
	for i, process := range chain.Processes[:len(chain.Processes)-1] {
		below := chain.Processes[i+1]
		if process.Place().Below.Peer != below.Place().Address.Addr() || below.Place().Peer != process.Place().Below.Address.Addr() {
			t.Errorf("places do not match: %+v, %+v", process.Place().Below, below.Place())
		}
		var port int
		call(t, below, "port", nil, &port)
		call(t, process, "ping below", port, nil)
	}
}

// A chain has at least two nodes, and at most as many as its addresses can number.
func TestChainLengths(t *testing.T) {
	for _, nodes := range []int{0, 1, 101} {
		if _, err := chainOf(t, nodes); err == nil {
			t.Errorf("a chain of %d nodes was started", nodes)
		}
	}
}

// What a chain was given and cannot start leaves nothing behind.
func TestChainThatFailsIsClosed(t *testing.T) {
	labtest.Require(t)
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	good := lab.ChainNode{Role: "good", Node: childConfig("child", "child").Server}
	bad := lab.ChainNode{Role: "bad", Node: lab.Node{Path: "/nonexistent"}}
	if _, err := lab.StartChain(testContext(t), 0, bad, good, good); err == nil {
		t.Fatal("a chain started without a program")
	}
	after, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	if len(after) > len(before) {
		t.Errorf("%d descriptors before, %d after", len(before), len(after))
	}
}
