package report

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// markers differ by colour, so that a curve is recognized in print as well. Solid shapes are gonum's; it has outlines too, but their hair
// lines hardly have a colour.
var markers = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, cross, ring, square, triangle, plus, diamond,
}

// strokes is a marker of thick lines: polylines about the origin, in radii.
type strokes [][]vg.Point

// glyphStroke is the width of their lines.
const glyphStroke = vg.Length(1.3)

// DrawGlyph satisfies draw.GlyphDrawer.
func (s strokes) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	for _, line := range s {
		points := make([]vg.Point, len(line))
		for i, p := range line {
			points[i] = vg.Point{X: at.X + p.X*style.Radius, Y: at.Y + p.Y*style.Radius}
		}
		c.StrokeLines(draw.LineStyle{Color: style.Color, Width: glyphStroke}, points)
	}
}

// The shapes.
var (
	cross    = strokes{{{X: -1, Y: -1}, {X: 1, Y: 1}}, {{X: -1, Y: 1}, {X: 1, Y: -1}}}
	plus     = strokes{{{X: -1.2, Y: 0}, {X: 1.2, Y: 0}}, {{X: 0, Y: -1.2}, {X: 0, Y: 1.2}}}
	ring     = strokes{polygon(16, 1, 0)}
	square   = strokes{polygon(4, 1.3, math.Pi/4)}
	diamond  = strokes{polygon(4, 1.3, 0)}
	triangle = strokes{polygon(3, 1.3, math.Pi/2)}
)

// polygon returns a closed line of so many corners on a circle of that radius, the first at the angle.
func polygon(corners int, radius vg.Length, angle float64) []vg.Point {
	points := make([]vg.Point, corners+1)
	for i := range points {
		sin, cos := math.Sincos(angle + 2*math.Pi*float64(i)/float64(corners))
		points[i] = vg.Point{X: radius * vg.Length(cos), Y: radius * vg.Length(sin)}
	}
	return points
}
