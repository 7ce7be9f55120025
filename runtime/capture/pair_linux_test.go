//go:build linux && !portable

package capture

import (
	"testing"

	"github.com/stillwater-rpc/stillwater/bench/lab"
	"github.com/stillwater-rpc/stillwater/bench/lab/labtest"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// newPair makes one if this process has the rights.
func newPair(t *testing.T) *pair {
	made := labtest.TryPair(t, lab.PairConfig{})
	if made == nil {
		return nil
	}
	at := func(end *lab.End) sw.EndpointConfig {
		return sw.EndpointConfig{Interface: end.Interface, RequireXDP: true}
	}
	return &pair{server: at(made.A), client: at(made.B), onServer: made.A.Do, onClient: made.B.Do}
}
