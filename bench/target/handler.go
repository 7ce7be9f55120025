package target

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/stillwater-rpc/stillwater/bench/checker"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// The methods that Register adds.
const (
	MethodEcho  = "echo"  // answers with the payload
	MethodSpin  = "spin"  // burns the CPU for the work in the payload, then echoes
	MethodSleep = "sleep" // blocks for the work in the payload, then echoes
)

// Register adds the methods of experiments to a server.
func Register(srv *sw.Server) error {
	return register(srv, func(h sw.Handler) sw.Handler { return h })
}

// RegisterLogged adds the same methods, and writes each execution into a log before anything else is done for it. The
// request's mark is that of an [Issuer] with a log; a request without room for one has mark 0.
func RegisterLogged(srv *sw.Server, log Log, boot uint32) error {
	return register(srv, func(h sw.Handler) sw.Handler {
		return func(ctx context.Context, req *sw.Request, reply []byte) ([]byte, error) {
			session, number := req.ID()
			x := checker.Execution{Boot: boot, Session: session, Number: number}
			if len(req.Payload) >= markEnd {
				x.Mark = binary.BigEndian.Uint64(req.Payload[markStart:])
			}
			log.Executed(x)
			return h(ctx, req, reply)
		}
	})
}

// Where the mark stands in a payload: behind the work.
const (
	markStart = workload.WorkBytes
	markEnd   = markStart + 8
)

func register(srv *sw.Server, wrap func(sw.Handler) sw.Handler) error {
	for _, m := range []struct {
		name    string
		handler sw.Handler
	}{{MethodEcho, echo}, {MethodSpin, spin}, {MethodSleep, sleep}} {
		if err := srv.Handle(m.name, wrap(m.handler)); err != nil {
			return fmt.Errorf("registering %s: %w", m.name, err)
		}
	}
	return nil
}

func echo(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
	return append(reply, req.Payload...), nil
}

func spin(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
	d, err := workload.DecodeWork(req.Payload)
	if err != nil {
		return reply, err
	}
	workload.Spin(d)
	return append(reply, req.Payload...), nil
}

func sleep(_ context.Context, req *sw.Request, reply []byte) ([]byte, error) {
	d, err := workload.DecodeWork(req.Payload)
	if err != nil {
		return reply, err
	}
	workload.Sleep(d)
	return append(reply, req.Payload...), nil
}
