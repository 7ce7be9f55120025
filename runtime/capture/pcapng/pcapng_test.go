package pcapng_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/stillwater-rpc/stillwater/runtime/capture/pcapng"
)

// TestGolden compares blocks with bytes that were put together by hand from the draft.
func TestGolden(t *testing.T) {
	packet := append(pcapng.BeginPacket([]byte("whatever it held before, which is longer than a head")), 0xaa, 0xbb, 0xcc, 0xdd, 0xee)
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"section", (&pcapng.Section{Application: "app", OS: "os", Comment: "c"}).Append(nil),
			"0a0d0d0a 38000000 4d3c2b1a 01000000 ffffffffffffffff 01000100 63000000 03000200 6f730000 04000300 61707000 00000000 38000000"},
		{"interface", (&pcapng.Interface{Name: "n", Description: "d", Link: pcapng.LinkRaw, SnapBytes: 0x01020304}).Append(nil),
			"01000000 30000000 65000000 04030201 02000100 6e000000 03000100 64000000 09000100 09000000 00000000 30000000"},
		{"packet", (&pcapng.Packet{Time: 0x0102030405060708, Length: 9, Direction: pcapng.Outbound, Dropped: 7, Comment: []byte("gone")}).Finish(packet),
			"06000000 48000000 00000000 04030201 08070605 05000000 09000000 aabbccdd ee000000" +
				" 01000400 676f6e65 02000400 02000000 04000800 0700000000000000 00000000 48000000"},
		{"statistics", (&pcapng.Statistics{Time: 0x0102030405060708, Received: 3, Dropped: 2, Delivered: 1}).Append(nil),
			"05000000 40000000 00000000 04030201 08070605 04000800 0300000000000000 05000800 0200000000000000" +
				" 08000800 0100000000000000 00000000 40000000"},
	} {
		if want, err := hex.DecodeString(strings.ReplaceAll(c.want, " ", "")); err != nil || !bytes.Equal(c.got, want) {
			t.Errorf("%s, %v:\n%x, want\n%x", c.name, err, c.got, want)
		}
		if pcapng.BlockLength(c.got) != len(c.got) || pcapng.IsPacket(c.got) != (c.name == "packet") {
			t.Errorf("%s: length %d of %d, a packet: %t", c.name, pcapng.BlockLength(c.got), len(c.got), pcapng.IsPacket(c.got))
		}
	}
}

// FuzzPacket writes a file, and reads it with another implementation.
func FuzzPacket(f *testing.F) {
	f.Add([]byte("packet"), int64(1_700_000_000_123_456_789), 100, true, uint64(0), "", "eth1")
	f.Add([]byte{}, int64(0), 0, false, uint64(1)<<63, "three", "")
	f.Add(make([]byte, 1500), int64(1), 1500, true, uint64(3), strings.Repeat("long ", 14_000), "a name\x00of bytes")
	f.Fuzz(func(t *testing.T, data []byte, ns int64, more int, out bool, dropped uint64, comment, name string) {
		if ns < 0 || more < 0 || more > 1<<20 || len(data) > 65535 {
			return // before 1970, and longer than a packet
		}
		p := pcapng.Packet{Time: ns, Length: len(data) + more, Direction: pcapng.Inbound, Dropped: dropped, Comment: []byte(comment)}
		if out {
			p.Direction = pcapng.Outbound
		}
		file := (&pcapng.Section{Application: name}).Append(nil)
		file = (&pcapng.Interface{Name: name, Description: comment, Link: pcapng.LinkRaw, SnapBytes: 65535}).Append(file)
		block := p.Finish(append(pcapng.BeginPacket(nil), data...))
		if len(block) > len(data)+len(comment)+pcapng.PacketOverheadBytes || len(block)%4 != 0 {
			t.Fatalf("%d bytes and a comment of %d became %d", len(data), len(comment), len(block))
		}
		file = append(file, block...)
		file = (&pcapng.Statistics{Time: ns, Received: dropped, Dropped: 5, Comment: []byte(comment)}).Append(file)
		readBack(t, file, data, &p, name)
	})
}

// readBack checks what another implementation makes of a file with one packet and its statistics.
func readBack(t *testing.T, file, data []byte, want *pcapng.Packet, name string) {
	t.Helper()
	comment := string(want.Comment[:min(len(want.Comment), 1<<16-1)])
	statistics := 0
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{
		StatisticsCallback: func(_ int, s pcapgo.NgInterfaceStatistics) {
			statistics++
			if s.Comment != comment || s.PacketsReceived != want.Dropped || s.PacketsDropped != 5 || s.LastUpdate.UnixNano() != want.Time {
				t.Errorf("statistics %+v", s)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	at, err := r.Interface(0)
	if err != nil || at.Name != name || at.Description != comment || at.LinkType != layers.LinkTypeRaw || at.SnapLength != 65535 || at.TimestampResolution != 9 {
		t.Errorf("interface %+v, %v", at, err)
	}
	if got := r.SectionInfo(); got.Application != name {
		t.Errorf("section %+v", got)
	}
	got, ci, options, err := r.ReadPacketDataWithOptions()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) || ci.Length != want.Length || !ci.Timestamp.Equal(time.Unix(0, want.Time)) {
		t.Errorf("%d bytes of %d at %v, want %d of %d at %v", len(got), ci.Length, ci.Timestamp, len(data), want.Length, time.Unix(0, want.Time))
	}
	if options.Flags == nil || uint32(options.Flags.Direction) != uint32(want.Direction) {
		t.Errorf("direction %+v", options.Flags)
	}
	if (options.DropCount != nil) != (want.Dropped > 0) || options.DropCount != nil && *options.DropCount != want.Dropped {
		t.Errorf("drop count %v, want %d", options.DropCount, want.Dropped)
	}
	if strings.Join(options.Comments, "|") != comment {
		t.Errorf("comments %q, want %q", options.Comments, comment)
	}
	if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) || statistics != 1 {
		t.Errorf("after the last packet: %v, %d statistics", err, statistics)
	}
}

func TestAllocatesNothing(t *testing.T) {
	buffer, data, comment := make([]byte, 0, 512), make([]byte, 101), []byte("words")
	allocs := testing.AllocsPerRun(100, func() {
		p := pcapng.Packet{Time: 1, Length: 5, Direction: pcapng.Inbound, Dropped: 1, Comment: comment}
		b := p.Finish(append(pcapng.BeginPacket(buffer), data...))
		(&pcapng.Statistics{Comment: comment}).Append(b)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
