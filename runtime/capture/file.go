package capture

import (
	"fmt"
	"io"
	"os"
	"time"
)

// oldSuffix is behind the name of a file that was rotated away.
const oldSuffix = ".old"

// Create captures into a file. One that is there is overwritten; a new one is for its owner alone, since payloads can be secret. A named pipe waits here for its reader,
// which Wireshark can be (wireshark -k -i pipe), and is given two seconds in the end to take the last packets.
func Create(path string, cfg Config) (*Tap, error) {
	if err := cfg.complete(); err != nil {
		return nil, err // before anything is overwritten
	}
	file, err := create(path)
	if err != nil {
		return nil, fmt.Errorf("creating the capture: %w", err)
	}
	info, err := file.Stat()
	regular := err == nil && info.Mode().IsRegular()
	if cfg.Rotate && !regular {
		file.Close()
		return nil, fmt.Errorf("creating the capture: %s is no regular file, so it cannot be rotated", path)
	}
	t, err := newTap(file, cfg)
	if err != nil {
		file.Close()
		return nil, err
	}
	if cfg.Rotate {
		t.sink.rotate = rotation(file, path)
	}
	if !regular {
		t.patience = func() { _ = file.SetWriteDeadline(time.Now().Add(closePatience)) } // a device has no deadline, nor a reader
	}
	return t, nil
}

func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// rotation returns what ends a file and begins the next one under its name.
func rotation(current *os.File, path string) func() (io.Writer, error) {
	return func() (io.Writer, error) {
		if err := current.Close(); err != nil {
			return nil, err
		}
		if err := os.Rename(path, path+oldSuffix); err != nil {
			return nil, err
		}
		next, err := create(path)
		if err != nil {
			return nil, err
		}
		current = next
		return next, nil
	}
}
