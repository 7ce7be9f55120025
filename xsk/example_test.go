//go:build linux

package xsk_test

import (
	"fmt"

	"github.com/stillwater-rpc/stillwater/xsk"
	"github.com/stillwater-rpc/stillwater/xsk/frame"
	"github.com/stillwater-rpc/stillwater/xsk/xsktest"
)

// The loop that a user of a queue writes: receive, answer in lent frames, release, kick. On a NIC the queue would come
// from Open; here the kernel's part is played by xsktest.
func ExampleQueue() {
	kernel := xsktest.NewKernel(xsk.Config{}, 0)
	queue, err := kernel.Queue()
	if err != nil {
		fmt.Println(err)
		return
	}
	kernel.Deliver([]byte("ping 1"), 0)
	kernel.Deliver([]byte("ping 2"), 0)

	batch := make([]frame.Desc, 64)
	received := batch[:queue.Receive(batch)]
	for _, desc := range received {
		addr, packet, ok := queue.Lend()
		if !ok {
			break // the kernel has them all: the peer will ask again
		}
		size := copy(packet, "pong"+string(queue.Bytes(desc)[4:]))
		queue.Submit(frame.Desc{Addr: addr, Len: uint32(size)})
	}
	queue.Release(received)
	if err := queue.Kick(); err != nil {
		fmt.Println(err)
	}

	for _, packet := range kernel.Sent {
		fmt.Println(string(packet))
	}
	fmt.Println(queue.Outstanding(), queue.Audit())
	// Output:
	// pong 1
	// pong 2
	// 0 <nil>
}
