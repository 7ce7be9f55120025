//go:build linux

package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
)

// MethodGo is the first call that a child receives; its body is a [Place]. A child that has to set itself up puts a
// handler under this name, and its answer (or error) is awaited by [Start].
const MethodGo = "go"

// lineBytesMax bounds one line of the control protocol. The largest is a run's result with its histograms, well below.
const lineBytesMax = 64 << 20

// Place says where in the lab a child stands.
type Place struct {
	Role       string       `json:"role"`
	Namespaced bool         `json:"namespaced"` // false: loopback in the host's own namespace
	Interface  string       `json:"interface"`
	Address    netip.Prefix `json:"address"` // of this child, on Interface
	Peer       netip.Addr   `json:"peer"`    // of the other child
	Below      *Place       `json:"below"`   // in a [Chain]: the end of the link to the next child; nil = it has none
}

// message is one line of the control protocol, in either direction. The child's first line has Ready and nothing else; then
// each call from the parent is answered by one line with the same ID.
type message struct {
	ID    uint64          `json:"id,omitempty"`
	Ready bool            `json:"ready,omitempty"`
	Call  string          `json:"call,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
	Error string          `json:"error,omitempty"`
}

// ServeChild is the child's side of the control protocol: one JSON object a line. It announces that it is ready,
// then answers the parent's calls one at a time, the first being [MethodGo], and returns nil at the end of in.
//
// A handler's error goes to the parent and the child goes on. ServeChild owns out: nothing else may be printed on it.
func ServeChild(in io.Reader, out io.Writer, handlers map[string]func(json.RawMessage) (any, error)) error {
	write := func(m message) error {
		line, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("lab: encode a control line: %w", err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("lab: write a control line: %w", err)
		}
		return nil
	}
	if err := write(message{Ready: true}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		var call message
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return fmt.Errorf("lab: control line %.100q is not a call: %w", lines.Text(), err)
		}
		if err := write(answer(call, handlers)); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("lab: read a control line: %w", err)
	}
	return nil
}

func answer(call message, handlers map[string]func(json.RawMessage) (any, error)) message {
	handler := handlers[call.Call]
	switch {
	case handler == nil && call.Call == MethodGo:
		return message{ID: call.ID} // a child without set-up of its own
	case handler == nil:
		return message{ID: call.ID, Error: fmt.Sprintf("no handler %q in this child", call.Call)}
	}
	result, err := handler(call.Body)
	if err != nil {
		return message{ID: call.ID, Error: errText(err)}
	}
	body, err := json.Marshal(result)
	if err != nil {
		return message{ID: call.ID, Error: fmt.Sprintf("encode the result of %q: %v", call.Call, err)}
	}
	return message{ID: call.ID, Body: body}
}

// errText is never empty, since an empty Error means success.
func errText(err error) string {
	if text := err.Error(); text != "" {
		return text
	}
	return "error without a text"
}
