package grpcadmit

import (
	"encoding/binary"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stillwater-rpc/stillwater/credit/admit"
)

const clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Frames of HTTP/2 (RFC 9113, section 6).
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameWindowUpdate = 8

	flagEndStream  = 1
	flagEndHeaders = 4

	frameHeaderBytes = 9
)

type frameHeader struct {
	length int
	kind   byte
	flags  byte
	stream uint32
}

func parseFrameHeader(b []byte) frameHeader {
	return frameHeader{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]), kind: b[3], flags: b[4], stream: binary.BigEndian.Uint32(b[5:]) & (1<<31 - 1),
	}
}

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// indexedOnly reports whether a header block has indexed fields only (RFC 7541, section 6.1): such a block leaves the table as it is, and is as short as they get.
func indexedOnly(block []byte) bool {
	for i := 0; i < len(block); i++ {
		if block[i]&0x80 == 0 {
			return false
		}
		if block[i] == 0xff { // the index goes on, in groups of seven bits
			for i++; i < len(block) && block[i]&0x80 != 0; i++ {
			}
			if i >= len(block) {
				return false
			}
		}
	}
	return true
}

// appendRefusal appends the answer to a request that did not run: headers that end the stream ("Trailers-Only"), without reference to the table of gRPC's own encoder.
func appendRefusal(b []byte, stream uint32, v admit.Verdict) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, frameHeaders, flagEndStream|flagEndHeaders)
	b = binary.BigEndian.AppendUint32(b, stream)
	b = append(b, 0x88)       // :status 200, in the static table
	b = append(b, 0x0f, 0x10) // content-type, literal, by its static name
	b = appendString(b, "application/grpc")
	code, pushback := codes.ResourceExhausted, "-1"
	if v.Advice != admit.AdviceDoNotRetry {
		code, pushback = codes.Unavailable, ""
		if v.RetryAfter > 0 {
			pushback = strconv.FormatInt(int64((v.RetryAfter+time.Millisecond-1)/time.Millisecond), 10)
		}
	}
	b = appendField(b, "grpc-status", strconv.Itoa(int(code)))
	b = appendField(b, "grpc-message", "refused: "+v.Reason.String())
	if pushback != "" {
		b = appendField(b, pushbackKey, pushback)
	}
	length := len(b) - start - frameHeaderBytes
	b[start], b[start+1], b[start+2] = byte(length>>16), byte(length>>8), byte(length)
	return b
}

// appendField appends a literal field that is not indexed (RFC 7541, section 6.2.2).
func appendField(b []byte, name, value string) []byte {
	return appendString(appendString(append(b, 0), name), value)
}

// appendString appends one of fewer than 127 bytes.
func appendString(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

// boundary follows the frames that are written.
type boundary struct {
	header []byte // of the frame that begins, as far as it was written
	skip   int    // bytes of the frame still to come
}

// write takes what is written next.
func (f *boundary) write(b []byte) {
	for len(b) > 0 {
		n := min(f.skip, len(b))
		f.skip -= n
		b = b[n:]
		if f.skip > 0 {
			return
		}
		n = min(frameHeaderBytes-len(f.header), len(b))
		f.header = append(f.header, b[:n]...)
		b = b[n:]
		if len(f.header) == frameHeaderBytes {
			f.skip = parseFrameHeader(f.header).length
			f.header = f.header[:0]
		}
	}
}

// between reports whether another frame can be written now.
func (f *boundary) between() bool { return f.skip == 0 && len(f.header) == 0 }
