package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Point is one point of a series.
type Point struct{ X, Y float64 }

// Series is one curve.
type Series struct {
	Name   string
	Points []Point
	// Markers, unless nil, are the only markers of the curve, as what somebody else measured of it. Without Points they stand alone.
	Markers []Point
	// Color picks one of nine; 0 takes the next unused one. Curves of one arm share a colour through several charts.
	Color int
	// Dashed tells a second curve of the same colour apart.
	Dashed bool
	// Reference marks a curve that was not measured, as an ideal: thin, grey, dashed, without markers.
	Reference bool
}

// HLine is a horizontal reference, as a capacity or an SLO. One without a label looks like the one before it, as the other end of a range.
type HLine struct {
	Y     float64
	Label string
}

// Span is a shaded interval of the X axis, as the time of an overload.
type Span struct {
	From, To float64
	Label    string
}

// LineChart is a chart as a value. Points that are not finite, and points that a logarithmic axis cannot show, are left
// out.
type LineChart struct {
	Title   string // what is to be seen
	Caption string // how to read it
	XLabel  string
	YLabel  string
	XFormat Format
	YFormat Format
	LogY    bool
	// XNames, where there are any, stand at X = 0, 1, 2 and so on: X is then a category and no number.
	XNames []string
	// YMin and YMax fix an end of the axis; zero lets the data decide. A fixed end cuts curves off.
	YMin, YMax float64
	Series     []Series
	HLines     []HLine
	Spans      []Span
}

// The measures of a chart in points. The legend's rows come on top of chartHeight, so the plot keeps its size.
const (
	chartWidth    = vg.Length(470)
	chartHeight   = vg.Length(262)
	fontSize      = vg.Length(9.5)
	rowHeight     = vg.Length(15)
	thumbWidth    = vg.Length(20)
	thumbGap      = vg.Length(5)
	itemGap       = vg.Length(14)
	labelGap      = vg.Length(5)  // between the legend and the Y label
	rightMargin   = vg.Length(10) // half of the last tick label
	manyPoints    = 40            // a curve with more has no markers
	noisyPoints   = 200           // a curve with more is drawn finer
	seriesStroke  = vg.Length(1.8)
	referenceLine = vg.Length(1.1)
)

// dashes of the curves that are dashed.
var dashes = []vg.Length{5, 3}

// curve is a series ready to be drawn.
type curve struct {
	name   string
	points plotter.XYs // of the line
	marks  plotter.XYs
	line   draw.LineStyle
	glyph  draw.GlyphStyle
	lined  bool
	marked bool
}

// WriteSVG writes the chart as a picture that stands alone, in light colours.
func (c LineChart) WriteSVG(w io.Writer) error {
	svg, err := c.svg()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, svg); err != nil {
		return fmt.Errorf("write chart %q: %w", c.Title, err)
	}
	return nil
}

// svg draws the chart.
func (c LineChart) svg() (string, error) {
	p := plot.New()
	p.BackgroundColor = nil
	curves := c.curves()
	c.axes(p, curves)
	c.addSpans(p)
	p.Add(gridLines{})
	legend := c.addHLines(p)
	if err := addCurves(p, curves); err != nil {
		return "", fmt.Errorf("draw chart %q: %w", c.Title, err)
	}
	items := append(legendItems(curves), legend...)
	for _, s := range c.Spans {
		items = append(items, legendItem{text: s.Label, draw: bandThumb})
	}
	style := textStyle(inkRole)
	rows := layout(items, style, chartWidth)
	top := rowHeight*vg.Length(len(rows)+1) + labelGap
	canvas := vgsvg.New(chartWidth, chartHeight+top)
	dc := draw.New(canvas)
	p.Draw(draw.Crop(dc, 0, -rightMargin, 0, -top-4))
	drawLegend(dc, rows, style)
	muted := textStyle(mutedRole)
	muted.YAlign = draw.YTop
	dc.FillText(muted, vg.Point{X: 0, Y: dc.Max.Y - rowHeight*vg.Length(len(rows)) - labelGap}, c.YLabel)

	var b strings.Builder
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("draw chart %q: %w", c.Title, err)
	}
	return b.String(), nil
}

// textStyle is the one size of text in charts.
func textStyle(r role) draw.TextStyle {
	return draw.TextStyle{
		Color:   r.color(),
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, fontSize),
		Handler: plot.DefaultTextHandler,
	}
}

// curves styles the series and drops the points that cannot be shown.
func (c LineChart) curves() []curve {
	curves := make([]curve, 0, len(c.Series))
	next := 0
	for _, s := range c.Series {
		index := s.Color - 1
		if index < 0 && !s.Reference {
			index = next
			next++
		}
		var k curve
		if s.Reference {
			k.line = draw.LineStyle{Color: mutedRole.color(), Width: referenceLine, Dashes: dashes}
		} else {
			index %= len(seriesRoles)
			colour := seriesRoles[index].color()
			k.line = draw.LineStyle{Color: colour, Width: seriesStroke}
			k.glyph = draw.GlyphStyle{Color: colour, Radius: 2.6, Shape: markers[index]}
			k.marked = len(s.Points) <= manyPoints
			if len(s.Points) > noisyPoints {
				k.line.Width = seriesStroke * 0.55
			}
			if s.Dashed {
				k.line.Dashes = dashes
				k.line.Width = seriesStroke * 0.75
				k.glyph.Radius = 2
			}
		}
		k.name = s.Name
		k.points = c.drawable(s.Points)
		k.lined, k.marks = true, k.points
		if s.Markers != nil {
			k.lined, k.marked, k.marks = len(s.Points) > 0, len(s.Markers) > 0, c.drawable(s.Markers)
		}
		curves = append(curves, k)
	}
	return curves
}

// drawable returns the points that the axes can show.
func (c LineChart) drawable(points []Point) (kept plotter.XYs) {
	for _, p := range points {
		if finite(p.X) && finite(p.Y) && (!c.LogY || p.Y > 0) {
			kept = append(kept, plotter.XY{X: p.X, Y: p.Y})
		}
	}
	return kept
}

// finite reports whether v can be drawn.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// axes sets ranges, ticks and styles.
func (c LineChart) axes(p *plot.Plot, curves []curve) {
	xlo, xhi, ylo, yhi := c.extent(curves)
	p.X.Min, p.X.Max = xlo, xhi
	p.Y.Min, p.Y.Max = ylo, yhi
	p.X.Tick.Marker = linearTicks{c.XFormat}
	if len(c.XNames) > 0 {
		p.X.Tick.Marker = nameTicks(c.XNames)
	}
	p.Y.Tick.Marker = linearTicks{c.YFormat}
	if c.LogY {
		p.Y.Scale = plot.LogScale{}
		p.Y.Tick.Marker = logTicks{c.YFormat}
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		label := textStyle(mutedRole)
		label.XAlign, label.YAlign = a.Tick.Label.XAlign, a.Tick.Label.YAlign
		a.Tick.Label = label
		a.Tick.Color = gridRole.color()
		a.Tick.Length = 4
		a.Color = mutedRole.color()
		a.Width = 0.6
		a.Padding = 0
	}
	p.Y.Width = 0 // the grid says the same
	p.Y.Tick.Length = 0
	p.X.Label.Text = c.XLabel
	p.X.Label.Padding = 3
	label := textStyle(mutedRole)
	label.XAlign, label.YAlign = p.X.Label.TextStyle.XAlign, p.X.Label.TextStyle.YAlign
	p.X.Label.TextStyle = label
}

// extent returns the ranges of both axes.
func (c LineChart) extent(curves []curve) (xlo, xhi, ylo, yhi float64) {
	xlo, xhi, ylo, yhi = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, k := range curves {
		for _, p := range slices.Concat(k.points, k.marks) {
			xlo, xhi = min(xlo, p.X), max(xhi, p.X)
			ylo, yhi = min(ylo, p.Y), max(yhi, p.Y)
		}
	}
	for _, h := range c.HLines {
		if finite(h.Y) && (!c.LogY || h.Y > 0) {
			ylo, yhi = min(ylo, h.Y), max(yhi, h.Y)
		}
	}
	if xhi < xlo {
		xlo, xhi = 0, 1
	}
	if yhi < ylo {
		ylo, yhi = 1, 10
	}
	if xlo == xhi {
		xhi = xlo + 1
	}
	if xlo > 0 && xlo < xhi/3 {
		xlo = 0
	}
	if names := len(c.XNames); names > 0 {
		xlo, xhi = -nameMargin, float64(names-1)+nameMargin
	} else if end := math.Ceil(xhi/(linearTicks{}).step(xlo, xhi)) * (linearTicks{}).step(xlo, xhi); end-xhi < 0.03*(xhi-xlo) {
		xhi = end // the last bucket ends at 1000 ms, though its middle is at 995
	}
	if c.LogY {
		ylo, yhi = niceLog(ylo, yhi)
	} else {
		ylo, yhi = niceLinear(ylo, yhi)
	}
	if c.YMin != 0 && (!c.LogY || c.YMin > 0) {
		ylo = c.YMin
	}
	if c.YMax != 0 && c.YMax > ylo {
		yhi = c.YMax
	}
	return xlo, xhi, ylo, yhi
}
