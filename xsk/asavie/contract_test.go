//go:build linux

package asavie_test

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/xsk/asavie"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest/contract"
)

// TestContract holds the queue to what package xsk's does. Each case has a process of its own, since a queue is never given back.
func TestContract(t *testing.T) { contract.TestApart(t, asavie.Open) }
