package capture

import (
	"errors"
	"fmt"
	"io"
	goruntime "runtime"

	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/capture/pcapng"
)

// trailerMax is kept free in a file for what ends it: that it is full, and the last statistics, with a comment each.
const trailerMax = 1024

// sink is the file, or one after the other. It belongs to the writer.
type sink struct {
	out    io.Writer
	rotate func() (io.Writer, error) // to the next file; nil = one has to do
	head   []byte                    // of each file
	max    int64                     // bytes of a file, trailer apart
	size   int64
	full   bool
	err    error

	statistics func(comment string) []byte // a block of them
}

// fileHead is what each file begins with. Without a port there is no interface.
func fileHead(cfg *Config, port dispatcher.Port) []byte {
	section := pcapng.Section{
		Application: "Stillwater", OS: goruntime.GOOS,
		Comment: "Packets as the port's owner saw them. The headers of IP and UDP are made up of the addresses; Ethernet is left out.",
	}
	head := section.Append(nil)
	if port == nil {
		return head
	}
	name := cfg.Name
	if name == "" {
		name = port.Name()
	}
	at := pcapng.Interface{
		Name: name, Description: fmt.Sprintf("Stillwater port %s at %s", port.Name(), port.LocalAddr()),
		Link: pcapng.LinkRaw, SnapBytes: uint32(cfg.SnapBytes),
	}
	return at.Append(head)
}

// ended reports that nothing more can be written.
func (s *sink) ended() bool { return s.full || s.err != nil }

// begin writes the head of a file.
func (s *sink) begin() {
	s.size = 0
	s.append(s.head)
}

// write appends whole blocks, and returns how many packets of them went nowhere.
func (s *sink) write(blocks []byte) (lost uint64) {
	for len(blocks) > 0 && !s.ended() {
		n := s.fitting(blocks)
		if n == 0 {
			s.next()
			continue
		}
		if !s.append(blocks[:n]) {
			break
		}
		blocks = blocks[n:]
	}
	return packets(blocks)
}

// fitting is the length of the whole blocks that the file still has room for.
func (s *sink) fitting(blocks []byte) (n int) {
	for n < len(blocks) {
		length := pcapng.BlockLength(blocks[n:])
		if s.size+int64(n+length) > s.max {
			break
		}
		n += length
	}
	return n
}

// append writes, all or nothing as far as the file allows that: it ends with a whole block even if the disk is full.
func (s *sink) append(b []byte) bool {
	if s.err != nil {
		return false
	}
	n, err := s.out.Write(b)
	if err == nil {
		s.size += int64(n)
		return true
	}
	s.err = fmt.Errorf("writing the capture: %w", err)
	if file, ok := s.out.(interface{ Truncate(int64) error }); ok && n > 0 {
		_ = file.Truncate(s.size) // a pipe cannot; then its reader finds half a block
	}
	return false
}

// next goes on with another file, or says in this one that it is full.
func (s *sink) next() {
	if s.rotate == nil {
		s.full = true
		s.append(s.statistics("the capture ends here: the file is full"))
		return
	}
	s.append(s.statistics("the capture goes on in the next file: this one is full"))
	out, err := s.rotate()
	if err != nil {
		s.out = io.Discard // the last file is closed already
		s.err = fmt.Errorf("beginning the next file of the capture: %w", err)
		return
	}
	s.out = out
	s.begin()
}

// end writes the last block and closes the file.
func (s *sink) end(last []byte) error {
	s.append(last)
	if closer, ok := s.out.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			s.err = errors.Join(s.err, fmt.Errorf("closing the capture: %w", err))
		}
	}
	return s.err
}
