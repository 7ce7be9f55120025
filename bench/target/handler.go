package target

import (
	"context"
	"fmt"

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
	for _, m := range []struct {
		name    string
		handler sw.Handler
	}{{MethodEcho, echo}, {MethodSpin, spin}, {MethodSleep, sleep}} {
		if err := srv.Handle(m.name, m.handler); err != nil {
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
