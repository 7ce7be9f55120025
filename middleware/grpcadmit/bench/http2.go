//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The frames of HTTP/2 that occur here (RFC 9113, section 6).
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePing         = 6
	frameGoAway       = 7
	frameWindowUpdate = 8

	flagAck        = 1 // of settings and pings
	flagEndStream  = 1 // of data and headers
	flagEndHeaders = 4

	frameHeaderBytes = 9
)

// connection is a client's end: it sends unary requests, and says how each ended. It does no more of HTTP/2 than grpc-go's server asks for.
type connection struct {
	fd       int
	out, in  []byte
	headers  []byte // of every request but the first
	payload  []byte
	next     uint32 // the stream of the next request
	answered map[uint32]bool
}

// dial connects, and sends what comes before the first request.
func dial(address string) (*connection, error) {
	tcp, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer tcp.Close()
	file, err := tcp.(*net.TCPConn).File() // a descriptor of our own, which Go's poller does not know
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return newConnection(fd)
}

func newConnection(fd int) (*connection, error) {
	c := &connection{fd: fd, next: 1, answered: map[uint32]bool{}}
	c.out = append(c.out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"...)
	c.out = appendFrame(c.out, frameSettings, 0, 0, []byte{0, 4, 0x7f, 0xff, 0xff, 0xff}) // SETTINGS_INITIAL_WINDOW_SIZE
	c.out = appendFrame(c.out, frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, 0x7fff0000-65535))
	message, err := proto.Marshal(wrapperspb.UInt64(1 << 40))
	if err != nil {
		return nil, err
	}
	c.payload = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	return c, nil
}

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// request appends one, and returns its stream.
func (c *connection) request() uint32 {
	stream := c.next
	c.next += 2
	headers := c.headers
	if headers == nil {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		encode := func() {
			block.Reset()
			for _, field := range [][2]string{
				{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"}, {"content-type", "application/grpc"},
				{"user-agent", "stillwater-bench"}, {"te", "trailers"},
			} {
				encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
			}
		}
		encode()
		headers = bytes.Clone(block.Bytes())
		encode()
		c.headers = bytes.Clone(block.Bytes())
	}
	c.out = appendFrame(c.out, frameHeaders, flagEndHeaders, stream, headers)
	c.out = appendFrame(c.out, frameData, flagEndStream, stream, c.payload)
	return stream
}

// flush writes what there is, as far as the socket takes it.
func (c *connection) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	n, err := unix.Write(c.fd, c.out)
	if err != nil {
		if errors.Is(err, syscall.EAGAIN) {
			return nil
		}
		return err
	}
	c.out = append(c.out[:0], c.out[n:]...)
	return nil
}

// receive reads what there is, and calls ended for each request that was answered, or refused.
func (c *connection) receive(buffer []byte, ended func(stream uint32, ok bool)) error {
	n, err := unix.Read(c.fd, buffer)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return nil
	case err != nil:
		return err
	case n == 0:
		return errors.New("the server closed a connection")
	}
	return c.parse(buffer[:n], ended)
}

// parse takes what the server sent.
func (c *connection) parse(bytes []byte, ended func(stream uint32, ok bool)) error {
	c.in = append(c.in, bytes...)
	rest := c.in
	for len(rest) >= frameHeaderBytes {
		length := int(rest[0])<<16 | int(rest[1])<<8 | int(rest[2])
		if len(rest) < frameHeaderBytes+length {
			break
		}
		stream := binary.BigEndian.Uint32(rest[5:])
		if err := c.frame(rest[3], rest[4], stream, rest[frameHeaderBytes:frameHeaderBytes+length], ended); err != nil {
			return err
		}
		rest = rest[frameHeaderBytes+length:]
	}
	c.in = append(c.in[:0], rest...)
	return nil
}

// frame acts on one. What is answered has data; a refusal has trailers only.
func (c *connection) frame(kind, flags byte, stream uint32, payload []byte, ended func(uint32, bool)) error {
	switch kind {
	case frameData:
		c.answered[stream] = true
	case frameHeaders:
		if flags&flagEndStream != 0 {
			ok := c.answered[stream]
			delete(c.answered, stream)
			ended(stream, ok)
		}
	case frameSettings:
		if flags&flagAck == 0 {
			c.out = appendFrame(c.out, frameSettings, flagAck, 0, nil)
		}
	case framePing:
		if flags&flagAck == 0 {
			c.out = appendFrame(c.out, framePing, flagAck, 0, payload)
		}
	case frameGoAway:
		return fmt.Errorf("the server goes away: %q", payload)
	}
	return nil
}
