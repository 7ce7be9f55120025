//go:build linux

package doctor

import (
	"fmt"
	"strings"
)

// subject is an item before it has a verdict: what is right for it, why it matters, and the cure for when it is not.
type subject struct{ id, want, why, cure string }

func (s subject) item(v Verdict, have string) []Item {
	group, _, _ := strings.Cut(s.id, ".")
	return []Item{{ID: s.id, Group: group, Verdict: v, Have: have, Want: s.want, Why: s.why, Cure: s.cure}}
}

// ok leaves out what nobody has to read of a thing that is as it should be.
func (s subject) ok(form string, values ...any) []Item {
	s.want, s.why, s.cure = "", "", ""
	return s.item(OK, fmt.Sprintf(form, values...))
}

func (s subject) warn(form string, values ...any) []Item {
	return s.item(Warn, fmt.Sprintf(form, values...))
}

func (s subject) fail(form string, values ...any) []Item {
	return s.item(Fail, fmt.Sprintf(form, values...))
}

// unknown says why it could not be found out, and how it can be.
func (s subject) unknown(have, cure string) []Item {
	s.cure = cure
	return s.item(Unknown, have)
}

// missing is unknown for want of a file.
func (s subject) missing(file string) []Item {
	return s.unknown("/"+file+" cannot be read", "cat /"+file)
}
