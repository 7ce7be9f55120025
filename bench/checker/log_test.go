//go:build linux

package checker

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"sync"
	"testing"
	"unsafe"
)

// writerVariable makes the test binary, executed again, append to the log it names until it is killed.
const writerVariable = "STILLWATER_CHECKER_TEST_LOG"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerVariable); path != "" {
		log, err := OpenLog(path)
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		for n := uint64(0); ; n++ {
			log.Executed(Execution{Mark: log.Mark(), Boot: 3, Session: 5, Number: n})
			if n == 99 {
				os.Stdout.WriteString("100\n")
			}
		}
	}
	os.Exit(m.Run())
}

func newLog(t *testing.T, records int) *Log {
	t.Helper()
	l, err := NewLog(records)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestLayout(t *testing.T) {
	if unsafe.Sizeof(line{}) != lineBytes || unsafe.Sizeof(header{}) != lineBytes {
		t.Fatalf("line %d, header %d bytes", unsafe.Sizeof(line{}), unsafe.Sizeof(header{}))
	}
}

func TestLogKeepsWhatWasWritten(t *testing.T) {
	l := newLog(t, 10)
	again, err := OpenLog(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	e := Ending{Mark: again.Mark(), Outcome: Unknown, Due: 1, Issued: 2, Deadline: 3, Finished: 4}
	x := Execution{Mark: e.Mark, Boot: 1<<32 - 1, Session: 1<<32 - 2, Number: 1<<64 - 1}
	again.Ended(e)
	again.Executed(x)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := Load(l, l)
	if err != nil {
		t.Fatal(err)
	}
	if want := (History{1, []Ending{e}, []Execution{x}}); !reflect.DeepEqual(h, want) {
		t.Fatalf("got %+v, want %+v", h, want)
	}
}

func TestLogOfManyWriters(t *testing.T) {
	const writers, each = 8, 1000
	l := newLog(t, writers*each)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				mark := l.Mark()
				l.Ended(Ending{Mark: mark})
				l.Executed(Execution{Mark: mark, Session: uint32(w), Number: uint64(n)})
			}
		})
	}
	wg.Wait()
	if _, err := Load(l, l); !errors.Is(err, ErrFull) {
		t.Fatalf("twice as many records as fit: %v", err)
	}
	l = newLog(t, 2*writers*each)
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				mark := l.Mark()
				l.Ended(Ending{Mark: mark})
				l.Executed(Execution{Mark: mark, Session: uint32(w), Number: uint64(n)})
			}
		})
	}
	wg.Wait()
	h, err := Load(l, l)
	if err != nil {
		t.Fatal(err)
	}
	if report := Check(h); report.Err() != nil || report.Executions() != writers*each {
		t.Fatalf("%+v", report)
	}
}

func TestTornLines(t *testing.T) {
	l := newLog(t, 4)
	l.Executed(Execution{Mark: l.Mark()})
	l.head.appended.Add(1) // what a writer leaves that is killed between reserving and writing
	l.Ended(Ending{Mark: 1})
	if all, torn, err := l.Executions(); len(all) != 1 || torn != 1 || err != nil {
		t.Fatalf("%v, %d torn, %v", all, torn, err)
	}
	server := newLog(t, 4)
	if _, err := Load(l, server); err == nil {
		t.Fatal("a client's log with a torn line was taken")
	}
}

// The record of a process survives SIGKILL.
func TestLogOutlivesItsWriter(t *testing.T) {
	l := newLog(t, 1<<16)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), writerVariable+"="+l.Path())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, readErr := bufio.NewReader(out).ReadString('\n')
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: that is the point
	if readErr != nil {
		t.Fatal(readErr)
	}
	for i := range min(l.Appended(), uint64(len(l.lines))) {
		r := &l.lines[i]
		if whole := r.kind.Load() == kindExecution; whole && (r.small != 3 || r.values[0] != i+1 || r.values[2] != i) || !whole && i < 100 {
			t.Fatalf("line %d: kind %d, boot %d, %v", i, r.kind.Load(), r.small, r.values)
		}
	}
}

func TestOpenRefusesWhatIsNoLog(t *testing.T) {
	if _, err := OpenLog(t.TempDir() + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	path := t.TempDir() + "/empty"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(path); err == nil {
		t.Error("an empty file was taken")
	}
}
