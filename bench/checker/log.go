//go:build linux

package checker

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Log is a history in shared memory, appended to by any number of goroutines of any number of processes. It has no name
// in any file system: its reader makes it, and it is gone with the last process that has it open.
type Log struct {
	file   *os.File
	memory []byte
	head   *header
	lines  []line
}

// header is the first line of the memory.
type header struct {
	appended atomic.Uint64 // lines reserved so far; more than there are if the log is too small
	marks    atomic.Uint64 // marks given out so far
	_        [lineBytes - 16]byte
}

// line is one record. The kind is written last: a line without one was begun by somebody who was killed.
type line struct {
	kind   atomic.Uint32
	small  uint32
	values [5]uint64
}

const (
	lineBytes = 48

	kindEnding    = 1
	kindExecution = 2
)

// ErrFull says that a log had no room for all records; what is in it says nothing about those.
var ErrFull = errors.New("checker: the log is full: make it with room for more records")

// NewLog makes an empty log for so many records. Memory is used as they come.
func NewLog(records int) (*Log, error) {
	fd, err := unix.MemfdCreate("stillwater-checker", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("checker: make a log: %w", err)
	}
	file := os.NewFile(uintptr(fd), "checker log")
	if err := file.Truncate(int64(records+1) * lineBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("checker: make a log of %d records: %w", records, err), file.Close())
	}
	return mapLog(file)
}

// OpenLog opens the log at a path that [Log.Path] gave, in this process or another.
func OpenLog(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("checker: open a log: %w", err)
	}
	return mapLog(file)
}

func mapLog(file *os.File) (*Log, error) {
	info, err := file.Stat()
	if err == nil && info.Size() < 2*lineBytes {
		err = fmt.Errorf("%d bytes hold no record", info.Size())
	}
	var memory []byte
	if err == nil {
		memory, err = unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("checker: map a log: %w", err), file.Close())
	}
	l := &Log{file: file, memory: memory, head: (*header)(unsafe.Pointer(&memory[0]))}
	l.lines = unsafe.Slice((*line)(unsafe.Pointer(&memory[lineBytes])), len(memory)/lineBytes-1)
	return l, nil
}

// Path is where another process of this user opens the log, while this one has it open.
func (l *Log) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), l.file.Fd()) }

// Close gives the log up; nobody may be writing through it.
func (l *Log) Close() error { return errors.Join(unix.Munmap(l.memory), l.file.Close()) }

// Mark gives out the next mark: 1, 2, 3, and so on. Whoever takes one owes it an [Ending].
func (l *Log) Mark() uint64 { return l.head.marks.Add(1) }

// Marks is how many were given out.
func (l *Log) Marks() uint64 { return l.head.marks.Load() }

// Appended is how many records were begun.
func (l *Log) Appended() uint64 { return l.head.appended.Load() }

// append reserves a line, fills it in, and says what it is.
func (l *Log) append(kind, small uint32, values [5]uint64) {
	at := l.head.appended.Add(1) - 1
	if at >= uint64(len(l.lines)) {
		return // the reader sees that there were more than lines
	}
	to := &l.lines[at]
	to.small, to.values = small, values
	to.kind.Store(kind)
}

// each reads the lines of one kind, in the order in which they were begun, and returns how many were begun and not ended.
func (l *Log) each(kind uint32, read func(line *line)) (torn int, err error) {
	count := l.head.appended.Load()
	if count > uint64(len(l.lines)) {
		return 0, fmt.Errorf("%w (%d of %d)", ErrFull, len(l.lines), count)
	}
	for i := range l.lines[:count] {
		switch line := &l.lines[i]; line.kind.Load() {
		case kind:
			read(line)
		case 0:
			torn++
		}
	}
	return torn, nil
}
