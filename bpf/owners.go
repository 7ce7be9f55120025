//go:build linux

package bpf

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"
)

// mapOwners is the name of the map of owners. Our program does not know it: it is bound to it, so that whoever finds the program finds it too.
const mapOwners = "queue_owners"

// ownerRecord is a value of the map of owners; its key is a receive queue. The kernel tells nobody which sockets are in an XSKMAP (net/xdp/xskmap.c has no
// lookup from user space), so whoever puts one in writes down who it is. It names, and decides nothing: that is the XSKMAP's.
type ownerRecord struct {
	PID     uint32
	Command [16]byte // TASK_COMM_LEN
}

// Owner is who put a socket into a queue. A process that died without taking it out is named until the queue has another one.
type Owner struct {
	Queue uint32
	Process
}

// QueueError says that a queue of an adopted program has somebody else's socket.
type QueueError struct {
	Queue uint32
	Owner Process // PID 0: not known
}

// Error names the owner.
func (e *QueueError) Error() string {
	if e.Owner.PID == 0 {
		return fmt.Sprintf("bpf: queue %d has a socket of an unknown process: use another queue", e.Queue)
	}
	return fmt.Sprintf("bpf: queue %d has a socket of process %d (%s): stop it, or use another queue", e.Queue, e.Owner.PID, e.Owner.Command)
}

// Alive reports whether the process can be seen, under the name that it has.
func (p Process) Alive() bool {
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
	return err == nil && string(bytes.TrimSpace(command)) == p.Command
}

// bindOwners makes the map of owners.
func (p *Program) bindOwners(queueCount int) (err error) {
	p.owners, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: mapOwners, Type: ebpf.Hash, KeySize: contractOwners.key, ValueSize: contractOwners.value, MaxEntries: uint32(queueCount),
	})
	if err == nil {
		err = p.objects.StillwaterXdp.BindMap(p.owners)
	}
	if err != nil {
		return fmt.Errorf("bpf: make the map of owners: %w", err)
	}
	return nil
}

// own writes down that the queue is this process's.
func (p *Program) own(queue uint32) error {
	record := ownerRecord{PID: uint32(os.Getpid())}
	command, err := os.ReadFile("/proc/self/comm")
	if err == nil {
		copy(record.Command[:], bytes.TrimSpace(command))
		err = p.owners.Put(queue, &record)
	}
	if err != nil {
		return fmt.Errorf("bpf: write down the owner of queue %d: %w", queue, err)
	}
	return nil
}

func (p *Program) disown(queue uint32) error {
	if err := p.owners.Delete(queue); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("bpf: cross out the owner of queue %d: %w", queue, err)
	}
	return nil
}

// taken is the error for a queue that has a socket.
func (p *Program) taken(queue uint32) error {
	e := &QueueError{Queue: queue}
	if owners, err := p.Owners(); err == nil {
		for _, o := range owners {
			if o.Queue == queue {
				e.Owner = o.Process
			}
		}
	}
	return e
}

// Owners returns who put a socket into which queue, in the queues' order.
func (p *Program) Owners() ([]Owner, error) { return readOwners(p.owners) }

func readOwners(owners *ebpf.Map) ([]Owner, error) {
	var (
		found  []Owner
		queue  uint32
		record ownerRecord
	)
	entries := owners.Iterate()
	for entries.Next(&queue, &record) {
		command, _, _ := bytes.Cut(record.Command[:], []byte{0})
		found = append(found, Owner{queue, Process{PID: int(record.PID), Command: string(command)}})
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("bpf: read the owners: %w", err)
	}
	slices.SortFunc(found, func(a, b Owner) int { return cmp.Compare(a.Queue, b.Queue) })
	return found, nil
}
