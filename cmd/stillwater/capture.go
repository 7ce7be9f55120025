package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	sw "github.com/stillwater-rpc/stillwater/runtime"
	"github.com/stillwater-rpc/stillwater/runtime/capture"
)

// captureFlags are the flags of a capture of the endpoint's own traffic.
type captureFlags struct {
	file   string
	bytes  byteSize
	snap   int
	rotate bool
}

func (f *captureFlags) register(flags *pflag.FlagSet) {
	f.bytes = capture.FileBytesDefault
	flags.StringVar(&f.file, "capture", "", "write the packets received and sent into this pcapng `file`; empty = none")
	flags.Var(&f.bytes, "capture-bytes", "bound of the capture's file, like 100MiB; when it is full the capture ends")
	flags.IntVar(&f.snap, "capture-snap", 0, "keep this `number` of bytes of each packet, from its IP header on; 0 = all")
	flags.BoolVar(&f.rotate, "capture-rotate", false, "when the file is full, rename it to FILE.old and begin another")
}

// check refuses what has no meaning, before anything is opened.
func (f *captureFlags) check() error {
	switch {
	case f.file == "" && (f.snap != 0 || f.rotate || f.bytes != capture.FileBytesDefault):
		return usageError("--capture-bytes, --capture-snap and --capture-rotate need --capture: it names the file")
	case f.file == "-":
		return usageError("--capture -: standard output is for data; name a file, or a named pipe (mkfifo)")
	case f.bytes < capture.FileBytesMin:
		return usageError("--capture-bytes %v: give at least %v, to hold a packet", &f.bytes, new(byteSize(capture.FileBytesMin)))
	case f.snap != 0 && (f.snap < capture.SnapBytesMin || f.snap > capture.SnapBytesMax):
		return usageError("--capture-snap %d: give %d, which the headers take, to %d, or 0 for all",
			f.snap, capture.SnapBytesMin, capture.SnapBytesMax)
	}
	return nil
}

// tap starts the capture, if one was asked for.
func (c *cli) tap(f *captureFlags, cfg *sw.EndpointConfig) error {
	if f.file == "" {
		return nil
	}
	tap, err := capture.Create(f.file, capture.Config{
		Name: cfg.Interface, FileBytes: int64(f.bytes), SnapBytes: f.snap, Rotate: f.rotate,
	})
	if err != nil {
		return &codeError{exitInternal, err} // also of a folder that is not ours: the privileges for AF_XDP are no cure for that
	}
	c.captured, cfg.WrapPort = tap, tap.Wrap
	return nil
}

// endCapture completes the file of a command that is over, however that ended, and says what is in it. Closing the endpoint does the first of it too, but a second
// signal, or an error, may have left that out.
func (c *cli) endCapture(failed error) error {
	if c.captured == nil {
		return failed
	}
	err := c.captured.Close()
	switch s := c.captured.Stats(); {
	case err != nil && failed == nil:
		return err // else it is part of what failed, or comes second to it
	case failed != nil && s == capture.Stats{}: // it did not come to that
	case s.Missed > 0:
		c.warn("the capture is not complete", "captured", s.Captured, "missed", s.Missed)
	default:
		c.log.Info("the capture is complete", "captured", s.Captured)
	}
	return failed
}

// byteSize is a number of bytes.
type byteSize int64

// byteUnits are the units of a byteSize, the largest first.
var byteUnits = []struct {
	name  string
	bytes byteSize
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String is what Set reads, in the largest unit that it is a multiple of.
func (s *byteSize) String() string {
	for _, unit := range byteUnits {
		if *s != 0 && *s%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", *s/unit.bytes, unit.name)
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type names the value in help.
func (s *byteSize) Type() string { return "size" }

// Set reads a number of bytes, or of one of the units.
func (s *byteSize) Set(text string) error {
	number, times := text, byteSize(1)
	for _, unit := range byteUnits {
		if before, found := strings.CutSuffix(text, unit.name); found {
			number, times = before, unit.bytes
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n > uint64(math.MaxInt64/times) {
		return errors.New("write a number of bytes, or one with a unit, like 512KiB, 100MiB or 1GiB")
	}
	*s = byteSize(n) * times
	return nil
}
