package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

const schemaCall = "stillwater.call.v1"

// callFlags are the flags of call.
type callFlags struct {
	endpointFlags
	attempts     attemptFlags
	scheme       scheme
	timeout      time.Duration
	trace        bool
	count        int
	payloadBytes int
	work         time.Duration
}

// callResult is one call as JSON.
type callResult struct {
	Outcome  string `json:"outcome"`
	Error    string `json:"error,omitempty"`
	Cure     string `json:"cure,omitempty"`
	Reply    string `json:"reply,omitempty"`     // when it is text
	ReplyHex string `json:"reply_hex,omitempty"` // when it is not

	Latency      time.Duration `json:"latency_ns"` // as the caller saw it; the next six sum up to it
	HandOver     time.Duration `json:"hand_over_ns"`
	ClientQueue  time.Duration `json:"client_queue_ns"`
	Network      time.Duration `json:"network_ns"`
	PacketQueue  time.Duration `json:"packet_queue_ns"`
	RequestQueue time.Duration `json:"request_queue_ns"`
	Service      time.Duration `json:"service_ns"`
}

// callPlace says what was called, and over what.
type callPlace struct {
	Address string `json:"address"`
	Method  string `json:"method"`
	Port    string `json:"port"` // xdp or udp
	Mode    string `json:"mode"`
}

const callLong = `Call a method once or more, and print the replies.

--trace prints where the time went: in the queue for a credit, on the network (both hosts' packet paths included), in the
server's packet queue, in its request queue, and in the handler. What is left is the hand over between the
caller's goroutine and the endpoint's loop. The first call also opens the connection: --count 2 or more shows it apart.`

func newCall(c *cli) *cobra.Command {
	f := &callFlags{scheme: sw.SchemeStillwater}
	cmd := &cobra.Command{
		Use:   "call ADDRESS METHOD [PAYLOAD]",
		Short: "Call a method, and see where the time went",
		Long:  callLong,
		Example: "  stillwater call 10.0.0.1:7700 echo hello --trace\n" +
			"  stillwater call 10.0.0.1 spin --work 10us --count 1000 --trace",
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			payload, err := f.payload(cmd, args)
			if err != nil {
				return err
			}
			return call(c, f, args[0], args[1], payload)
		},
	}
	flags := cmd.Flags()
	f.register(flags)
	f.attempts.register(flags)
	flags.Var(&f.scheme, "scheme", "the server's overload control, if that has a half at its clients: "+schemeUsage)
	flags.DurationVar(&f.timeout, "timeout", time.Second, "deadline of each call, from its start")
	flags.BoolVar(&f.trace, "trace", false, "print where the time went")
	flags.IntVar(&f.count, "count", 1, "number of calls, one after the other; the first failure ends it")
	flags.IntVar(&f.payloadBytes, "payload-bytes", 0, "length of a made-up payload, instead of PAYLOAD")
	flags.DurationVar(&f.work, "work", 0, "work that the payload asks of spin or sleep, instead of PAYLOAD")
	return cmd
}

// payload is the text given, or one that asks for work.
func (f *callFlags) payload(cmd *cobra.Command, args []string) ([]byte, error) {
	if err := f.attempts.check(); err != nil {
		return nil, err
	}
	made := cmd.Flags().Changed("payload-bytes") || cmd.Flags().Changed("work")
	switch {
	case f.count < 1:
		return nil, usageError("--count %d: give at least 1", f.count)
	case f.timeout <= 0:
		return nil, usageError("--timeout %v: it must be above 0, like 1s", f.timeout)
	case len(args) == 3 && made:
		return nil, usageError("give either PAYLOAD, or --payload-bytes and --work")
	case len(args) == 3:
		return []byte(args[2]), nil
	case !made:
		return nil, nil
	case f.payloadBytes < 0:
		return nil, usageError("--payload-bytes %d: it cannot be negative", f.payloadBytes)
	case !cmd.Flags().Changed("work"):
		return make([]byte, f.payloadBytes), nil
	}
	payload := make([]byte, max(f.payloadBytes, workload.WorkBytes))
	if err := workload.EncodeWork(payload, f.work); err != nil {
		return nil, usageError("--work: %w", err)
	}
	return payload, nil
}

func call(c *cli, f *callFlags, server, method string, payload []byte) (err error) {
	cfg := sw.ClientConfig{Scheme: string(f.scheme)}
	f.attempts.configure(&cfg)
	client, err := c.dial(&f.endpointFlags, server, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	ep := client.Endpoint()
	place := callPlace{Address: server, Method: method, Port: ep.PortName(), Mode: ep.Mode()}
	results := []callResult{} // not nil, so that it is a list in JSON
	var failed error
	for len(results) < f.count && failed == nil {
		var result callResult
		result, failed = f.once(f.attempts.context(c.ctx), client, method, payload)
		results = append(results, result)
		if err := f.printCall(c, place, result); err != nil {
			return err
		}
	}
	if err := f.printCalls(c, place, results); err != nil {
		return err
	}
	if failed == nil {
		return nil
	}
	if f.count > 1 {
		failed = fmt.Errorf("call %d of %d: %w", len(results), f.count, failed)
	}
	return callError(server, method, failed)
}

// printCalls prints what can only be said when all calls have ended.
func (f *callFlags) printCalls(c *cli, place callPlace, results []callResult) error {
	if c.format == formatJSON {
		return c.printObject(schemaCall, struct {
			callPlace
			Calls []callResult `json:"calls"`
		}{place, results})
	}
	answered := answeredOnly(results)
	if !c.text() || !f.trace || len(answered) == 0 {
		return nil
	}
	return c.print("over " + place.Mode + "\n" + traceTable(answered))
}

// once makes one call.
func (f *callFlags) once(ctx context.Context, client *sw.Client, method string, payload []byte) (callResult, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	start := time.Now()
	reply, t, err := client.CallTimed(ctx, method, payload, nil)
	r := callResult{Latency: time.Since(start)}
	if err != nil {
		how := explain(err)
		r.Outcome, r.Error, r.Cure = how.outcome, err.Error(), how.cure
		return r, err
	}
	r.Outcome = outcomeOK
	if isText(reply) {
		r.Reply = string(reply)
	} else {
		r.ReplyHex = hex.EncodeToString(reply)
	}
	r.ClientQueue, r.Network, r.PacketQueue, r.RequestQueue, r.Service = t.ClientQueue, t.Network, t.PacketQueue, t.RequestQueue, t.Service
	r.HandOver = r.Latency - (r.ClientQueue + r.Network + r.PacketQueue + r.RequestQueue + r.Service)
	return r, nil
}

// isText reports whether a terminal can show it.
func isText(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, r := range string(b) {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			return false
		}
	}
	return true
}

// printCall prints a reply as soon as it is there, where the format has room for it. Who traces many calls wants the table.
func (f *callFlags) printCall(c *cli, place callPlace, r callResult) error {
	switch {
	case c.format == formatJSONL:
		return c.printLine(schemaCall, struct {
			callPlace
			callResult
		}{place, r})
	case c.format == formatJSON, r.Outcome != outcomeOK, f.trace && f.count > 1:
		return nil
	case r.ReplyHex != "":
		return c.print(fmt.Sprintf("%d bytes: %s\n", len(r.ReplyHex)/2, r.ReplyHex))
	}
	return c.print(r.Reply + "\n")
}
