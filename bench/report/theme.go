package report

import (
	"fmt"
	"image/color"
	"strings"
)

// Every colour of a chart has a role, and each role is one CSS variable of the page, so that one SVG is right in light
// and in dark. The SVG itself carries the light colours: alone in a file it is still a picture.
type role struct {
	variable    string // of the style sheet
	light, dark string // #RRGGBB; light ones are distinct, since they name the role in the SVG
}

// The roles beside the series. Black is spared: SVG writes it by leaving the colour out.
var (
	inkRole   = role{"ink", "#1B1F24", "#E8EAED"}
	mutedRole = role{"muted", "#5F6873", "#9AA3AD"}
	gridRole  = role{"grid", "#E3E6EA", "#343A42"}
	bandRole  = role{"band", "#EEF0F3", "#262B32"}
)

// seriesRoles are, up to the sixth, the colours of Okabe and Ito, told apart by every kind of colour vision, darkened or lightened for
// contrast with the page; the shapes of the markers say the same again. The rest is for who compares more than six.
var seriesRoles = []role{
	{"series-1", "#0072B2", "#5AB4F0"}, // blue
	{"series-2", "#D55E00", "#FF8F45"}, // vermilion
	{"series-3", "#00815F", "#2FCB9E"}, // green
	{"series-4", "#AA4499", "#E39BD3"}, // purple
	{"series-5", "#A87900", "#F0C24B"}, // amber
	{"series-6", "#5B6470", "#B4BCC6"}, // slate
	{"series-7", "#0E8C9B", "#56D5E3"}, // teal
	{"series-8", "#8A5A36", "#CBA181"}, // brown
	{"series-9", "#C2185B", "#FF85AD"}, // crimson
}

// allRoles lists every role.
func allRoles() []role {
	return append([]role{inkRole, mutedRole, gridRole, bandRole}, seriesRoles...)
}

// color returns the light colour for gonum.
func (r role) color() color.Color {
	var c color.NRGBA
	if _, err := fmt.Sscanf(r.light, "#%02X%02X%02X", &c.R, &c.G, &c.B); err != nil {
		panic("report: colour " + r.light + " is not #RRGGBB") // a constant of this file
	}
	c.A = 255
	return c
}

// variables returns the CSS declarations of one theme.
func variables(dark bool) string {
	var b strings.Builder
	for _, r := range allRoles() {
		value := r.light
		if dark {
			value = r.dark
		}
		fmt.Fprintf(&b, "--%s:%s;", r.variable, value)
	}
	return b.String()
}
