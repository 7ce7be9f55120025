package runtime

import (
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/credit/client"
)

// SchemeParams are what the settings of the published schemes depend on: service time, round trip, number of clients. The zero value is the
// set-up that they were published for.
type SchemeParams = baseline.Params

// The schemes of overload control that this package speaks of by name; [Schemes] are all. The others are published ones, to compare with:
// package credit/baseline says what each does.
const (
	SchemeStillwater = baseline.Stillwater // server-issued credits after Breakwater (OSDI 2020), and rejection at the door
	SchemeNone       = baseline.None       // everything that the clients' slots allow: the control arm of experiments
)

// Schemes are the names of all schemes of overload control.
func Schemes() []string { return baseline.Names() }

// ErrUnknownScheme says that no scheme has the name that a configuration gives; the error around it lists them.
var ErrUnknownScheme = baseline.ErrUnknown

// policyOf makes the client's half of a scheme, one for each session; nil = it has none.
func policyOf(name string, p SchemeParams) (func() client.Policy, error) {
	scheme, err := baseline.Lookup(name, p)
	return scheme.NewPolicy, err
}
