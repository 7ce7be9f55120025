package wire_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stillwater-rpc/stillwater/wire"
)

// luaField is a field of a message as Wireshark's dissector has it.
type luaField struct {
	at, size int
	name     string
}

// luaMessage is a line of the dissector's tables.
type luaMessage struct {
	name     string
	size     int
	fixed    []luaField
	optional map[byte][]luaField // by flag
	flags    []byte              // in the order of the fields
	payload  bool
}

var (
	luaMessageLine  = regexp.MustCompile(`(?m)^    \[(\d+)\] = \{ name = "([a-z ]+)", size = (\d+)(.*) \},$`)
	luaFixed        = regexp.MustCompile(`\{(\d+), (\d+), "(\w+)"\}`)
	luaOptionalLine = regexp.MustCompile(`(?m)^    \[(\d+)\] = \{ (\{0x.*\}) \},$`)
	luaGroup        = regexp.MustCompile(`\{0x([0-9a-f]+)((?:, \{\d+, "\w+"\})+)\}`)
	luaGrouped      = regexp.MustCompile(`\{(\d+), "(\w+)"\}`)
	luaName         = regexp.MustCompile(`\[(\d+)\] = "([a-z ]+)"`)
)

func number(t *testing.T, text string, base int) int {
	t.Helper()
	n, err := strconv.ParseInt(text, base, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// dissector reads the tables of the dissector.
func dissector(t *testing.T) (text string, messages map[wire.Type]*luaMessage) {
	t.Helper()
	raw, err := os.ReadFile("stillwater.lua")
	if err != nil {
		t.Fatal(err)
	}
	text, messages = string(raw), map[wire.Type]*luaMessage{}
	for _, line := range luaMessageLine.FindAllStringSubmatch(text, -1) {
		m := &luaMessage{name: line[2], size: number(t, line[3], 10), payload: strings.HasSuffix(line[4], "payload = true"), optional: map[byte][]luaField{}}
		for _, f := range luaFixed.FindAllStringSubmatch(line[4], -1) {
			m.fixed = append(m.fixed, luaField{number(t, f[1], 10), number(t, f[2], 10), f[3]})
		}
		messages[wire.Type(number(t, line[1], 10))] = m
	}
	for _, line := range luaOptionalLine.FindAllStringSubmatch(text, -1) {
		m := messages[wire.Type(number(t, line[1], 10))]
		for _, group := range luaGroup.FindAllStringSubmatch(line[2], -1) {
			flag := byte(number(t, group[1], 16))
			m.flags = append(m.flags, flag)
			for _, f := range luaGrouped.FindAllStringSubmatch(group[2], -1) {
				m.optional[flag] = append(m.optional[flag], luaField{0, number(t, f[1], 10), f[2]})
			}
		}
	}
	return text, messages
}

// units are those of the durations.
var units = map[string]time.Duration{
	"budget": time.Microsecond, "target_delay": time.Microsecond, "drop_threshold": time.Microsecond,
	"packet_queue": 1, "request_queue": 1, "retry_after": 10 * time.Microsecond, "service": 1,
}

// valueOf is what a field of the dissector should show of a message, as bytes.
func valueOf(t *testing.T, m message, f luaField) string {
	t.Helper()
	name := ""
	for word := range strings.SplitSeq(f.name, "_") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	value := reflect.ValueOf(m).Elem().FieldByName(name)
	switch {
	case f.name == "reserved":
		return string(make([]byte, f.size))
	case f.name == "metadata_length":
		return string(binary.BigEndian.AppendUint16(nil, uint16(len(m.(*wire.Request).Metadata))))
	case !value.IsValid():
		t.Fatalf("%T has no field %s, of which the dissector has %d bytes at %d", m, name, f.size, f.at)
	case value.CanUint():
		return string(binary.BigEndian.AppendUint64(nil, value.Uint())[8-f.size:])
	case value.CanInt():
		return string(binary.BigEndian.AppendUint64(nil, uint64(value.Int()/int64(units[f.name])))[8-f.size:])
	case value.Kind() == reflect.Array:
		token := value.Interface().(wire.Token)
		return string(token[:])
	}
	return string(value.Bytes())
}

// TestDissectorHasTheFields writes each message and finds its fields where Wireshark's dissector looks for them. Whoever changes a layout, adds a
// field or a message, has to change it there too.
func TestDissectorHasTheFields(t *testing.T) {
	text, messages := dissector(t)
	for _, c := range golden {
		m, raw := messages[c.t], c.message.Append(nil)
		if m == nil {
			t.Errorf("%s: the dissector does not have it", c.name)
			continue
		}
		fields, at := m.fixed, wire.MessageHeaderBytes
		for _, f := range m.fixed {
			if f.at != at {
				t.Errorf("%s: %s is at %d, and what is before it ends at %d", c.name, f.name, f.at, at)
			}
			at += f.size
		}
		if at != m.size {
			t.Errorf("%s: the fields end at %d of %d", c.name, at, m.size)
		}
		for _, flag := range m.flags {
			for _, f := range m.optional[flag] {
				if raw[1]&flag == 0 {
					continue
				}
				if f.name == "metadata" {
					f.size = len(c.message.(*wire.Request).Metadata)
				}
				f.at = at
				fields, at = append(fields, f), at+f.size
			}
		}
		for _, f := range fields {
			if f.at+f.size > len(raw) {
				t.Fatalf("%s: %s ends at %d of %d", c.name, f.name, f.at+f.size, len(raw))
			}
			if got, want := string(raw[f.at:f.at+f.size]), valueOf(t, c.message, f); got != want {
				t.Errorf("%s: at %d, where the dissector has %s, there is %x, want %x", c.name, f.at, f.name, got, want)
			}
			if !strings.Contains(text, "\n    "+f.name+" = ProtoField.") {
				t.Errorf("%s: %s is no field of the dissector", c.name, f.name)
			}
		}
		if at < len(raw) && !m.payload {
			t.Errorf("%s: the fields end at %d of %d, and the dissector has no payload behind them", c.name, at, len(raw))
		}
	}
}

// TestDissectorHasTheNames compares numbers and names.
func TestDissectorHasTheNames(t *testing.T) {
	text, messages := dissector(t)
	types := map[int]string{}
	for number, m := range messages {
		types[int(number)] = m.name
	}
	table := func(name string) map[int]string {
		names := map[int]string{}
		for line := range strings.Lines(text) {
			if list, found := strings.CutPrefix(line, "local "+name+" = {"); found {
				for _, n := range luaName.FindAllStringSubmatch(list, -1) {
					names[number(t, n[1], 10)] = n[2]
				}
			}
		}
		return names
	}
	listed := func(names []string) func(int) string {
		return func(code int) string {
			if code < len(names) {
				return names[code]
			}
			return "unknown"
		}
	}
	for _, c := range []struct {
		what string
		lua  map[int]string
		name func(int) string
	}{
		{"type", types, func(code int) string { return wire.Type(code).String() }},
		{"status", table("statuses"), func(code int) string { return wire.Status(code).String() }},
		{"reason", table("reasons"), func(code int) string { return wire.RejectReason(code).String() }},
		{"advice", table("advices"), listed([]string{wire.AdviceNone: "none", wire.AdviceDoNotRetry: "do not retry"})},
		{"criticality", table("criticalities"), listed([]string{
			wire.CriticalityUnset: "unset", wire.Sheddable: "sheddable", wire.SheddablePlus: "sheddable plus",
			wire.Critical: "critical", wire.CriticalPlus: "critical plus",
		})},
	} {
		for code := range 256 {
			if lua, found := c.lua[code]; found != (c.name(code) != "unknown") || found && lua != c.name(code) {
				t.Errorf("%s %d is %q in Go and %q in the dissector", c.what, code, c.name(code), lua)
			}
		}
	}
	for _, line := range []string{
		fmt.Sprintf("local VERSION, HEADER, TAG, MESSAGE_HEADER, PORT = %d, %d, %d, %d, ", wire.Version, wire.HeaderBytes, wire.TagBytes, wire.MessageHeaderBytes),
		fmt.Sprintf(`"stillwater.flags.sealed", "Sealed", 8, nil, 0x%02x)`, wire.PacketSealed),
		fmt.Sprintf(`"stillwater.flags.key_phase", "Key phase", 8, nil, 0x%02x)`, wire.PacketKeyPhase),
		fmt.Sprintf(`"stillwater.flags.handshake", "Handshake", 8, nil, 0x%02x)`, wire.PacketHandshake),
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the dissector has no %q", line)
		}
	}
}
