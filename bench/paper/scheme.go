package paper

import (
	"fmt"
	"slices"
)

// Scheme is an overload control.
type Scheme string

// The schemes, ours first.
const (
	Stillwater         Scheme = "stillwater"
	BreakwaterArtifact Scheme = "breakwater-artifact" // as the paper's code counts; what its figures show
	BreakwaterPaper    Scheme = "breakwater-paper"    // as the paper's text states the law
	DAGOR              Scheme = "dagor"
	SEDA               Scheme = "seda"
	None               Scheme = "none" // bounded by the clients' slots alone
	CoDel              Scheme = "codel"
	Window             Scheme = "window" // a TCP-like window per client
	Protego            Scheme = "protego"
)

// Schemes returns all schemes in the order of legends and tables.
func Schemes() []Scheme {
	return []Scheme{Stillwater, BreakwaterArtifact, BreakwaterPaper, DAGOR, SEDA, None, CoDel, Window, Protego}
}

// ParseScheme reads a scheme's name.
func ParseScheme(text string) (Scheme, error) {
	if s := Scheme(text); slices.Contains(Schemes(), s) {
		return s, nil
	}
	return "", fmt.Errorf("%w: scheme %q: write one of %v", ErrOptions, text, Schemes())
}

// hasCredits reports whether a scheme is one of Breakwater's laws, whose parts can be switched off.
func (s Scheme) hasCredits() bool {
	return s == Stillwater || s == BreakwaterArtifact || s == BreakwaterPaper
}

// Parts says which parts of Breakwater's law are on. It is zero for schemes that have no such parts.
type Parts struct {
	Credits     bool // the server hands out the right to send
	Speculation bool // credits are issued on stale demand; off: each client asks first, in a message of its own
	AQM         bool // the server rejects at the door above the drop threshold
}

// whole is the law with all its parts.
var whole = Parts{Credits: true, Speculation: true, AQM: true}

// String returns the name of the curve in the ablation (F9), or in F8.
func (p Parts) String() string {
	switch p {
	case Parts{}:
		return ""
	case whole:
		return "credit+spec+AQM"
	case Parts{Credits: true, Speculation: true}:
		return "credit+spec"
	case Parts{Credits: true}:
		return "credit"
	case Parts{AQM: true}:
		return "AQM only"
	case Parts{Credits: true, AQM: true}:
		return "demand asked"
	}
	return fmt.Sprintf("credits %v, speculation %v, AQM %v", p.Credits, p.Speculation, p.AQM)
}
