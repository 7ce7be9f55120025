package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// manager is the service manager that started us (sd_notify(3)); nil is none.
type manager struct {
	conn  *net.UnixConn
	every time.Duration // between two signs of life; 0 = none are wanted
}

// findManager looks into the environment. A socket that cannot be reached is an error: the manager would wait for the line that says that
// calls are answered, and kill us.
func findManager(getenv func(string) string) (*manager, error) {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	if path[0] == '@' {
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("telling the service manager (NOTIFY_SOCKET): %w", err)
	}
	m := &manager{conn: conn}
	usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	if pid := getenv("WATCHDOG_PID"); err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.every = time.Duration(usec) * time.Microsecond / 2 // as sd_watchdog_enabled(3) advises
	}
	return m, nil
}

// tell sends a state, such as READY=1. What cannot be sent is lost: nobody is there to be told.
func (m *manager) tell(state string) {
	if m != nil {
		_, _ = m.conn.Write([]byte(state))
	}
}

// watch shows signs of life for as long as alive returns without an error. It returns when stop is closed.
func (m *manager) watch(alive func() error, stop <-chan struct{}) {
	if m == nil || m.every == 0 {
		return
	}
	tick := time.NewTicker(m.every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			if alive() == nil { // waits for the loop: a loop that hangs is one that does not live
				m.tell("WATCHDOG=1")
			}
		}
	}
}

func (m *manager) close() error {
	if m == nil {
		return nil
	}
	return m.conn.Close()
}
