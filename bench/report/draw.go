package report

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// gridLines draws a line at every labelled tick of the Y axis. Vertical lines would add ink and no reading.
type gridLines struct{}

// Plot satisfies plot.Plotter.
func (gridLines) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	style := draw.LineStyle{Color: gridRole.color(), Width: 0.7}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if !t.IsMinor() {
			c.StrokeLine2(style, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}

// band shades an interval of X.
type band struct{ from, to float64 }

// Plot satisfies plot.Plotter.
func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	from, to := max(x(b.from), c.Min.X), min(x(b.to), c.Max.X)
	if to <= from {
		return
	}
	c.FillPolygon(bandRole.color(), []vg.Point{
		{X: from, Y: c.Min.Y}, {X: to, Y: c.Min.Y}, {X: to, Y: c.Max.Y}, {X: from, Y: c.Max.Y},
	})
}

// addSpans shades the spans, below everything else.
func (c LineChart) addSpans(p *plot.Plot) {
	for _, s := range c.Spans {
		p.Add(band{s.From, s.To})
	}
}

// hlineDashes tell several horizontal lines apart.
var hlineDashes = [][]vg.Length{{7, 3}, {2, 2}, {7, 3, 2, 3}}

// hline draws a reference across the plot.
type hline struct {
	y     float64
	style draw.LineStyle
}

// Plot satisfies plot.Plotter.
func (h hline) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	if at := y(h.y); at >= c.Min.Y && at <= c.Max.Y {
		c.StrokeLine2(h.style, c.Min.X, at, c.Max.X, at)
	}
}

// addHLines draws the horizontal references and returns their legend.
func (c LineChart) addHLines(p *plot.Plot) []legendItem {
	var items []legendItem
	var style draw.LineStyle
	for i, h := range c.HLines {
		if i == 0 || h.Label != "" {
			style = draw.LineStyle{Color: inkRole.color(), Width: referenceLine, Dashes: hlineDashes[i%len(hlineDashes)]}
		}
		if !finite(h.Y) || c.LogY && h.Y <= 0 {
			continue
		}
		p.Add(hline{h.Y, style})
		if h.Label != "" {
			items = append(items, legendItem{text: h.Label, draw: lineThumb(style)})
		}
	}
	return items
}

// addCurves draws the curves, the first above all others, and the markers above all curves.
func addCurves(p *plot.Plot, curves []curve) error {
	for _, k := range slices.Backward(curves) {
		if len(k.points) == 0 {
			continue
		}
		line, err := plotter.NewLine(k.points)
		if err != nil {
			return err
		}
		line.LineStyle = k.line
		p.Add(fixedRange{line})
	}
	for _, k := range slices.Backward(curves) {
		if !k.marked || len(k.marks) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(k.marks)
		if err != nil {
			return err
		}
		dots.GlyphStyle = k.glyph
		p.Add(fixedRange{dots})
	}
	return nil
}

// fixedRange hides that a plotter knows its range, since the chart has set the axes already.
type fixedRange struct{ plot.Plotter }

// legendItem is one entry of the legend, above the plot, where it covers nothing.
type legendItem struct {
	text string
	draw func(c draw.Canvas, from vg.Point) // a sample thumbWidth wide, centred on from.Y
}

// lineThumb is a sample of a line.
func lineThumb(style draw.LineStyle) func(draw.Canvas, vg.Point) {
	return func(c draw.Canvas, from vg.Point) {
		c.StrokeLine2(style, from.X, from.Y, from.X+thumbWidth, from.Y)
	}
}

// bandThumb is a sample of a span.
func bandThumb(c draw.Canvas, from vg.Point) {
	corners := []vg.Point{
		{X: from.X, Y: from.Y - 4}, {X: from.X + thumbWidth, Y: from.Y - 4},
		{X: from.X + thumbWidth, Y: from.Y + 4}, {X: from.X, Y: from.Y + 4}, {X: from.X, Y: from.Y - 4},
	}
	c.FillPolygon(bandRole.color(), corners)
	c.StrokeLines(draw.LineStyle{Color: gridRole.color(), Width: 0.7}, corners)
}

// legendItems are the entries of the curves.
func legendItems(curves []curve) []legendItem {
	items := make([]legendItem, 0, len(curves))
	for _, k := range curves {
		items = append(items, legendItem{text: k.name, draw: func(c draw.Canvas, from vg.Point) {
			if k.lined {
				lineThumb(k.line)(c, from)
			}
			if k.marked {
				c.DrawGlyphNoClip(k.glyph, vg.Point{X: from.X + thumbWidth/2, Y: from.Y})
			}
		}})
	}
	return items
}

// widerFont is how much wider than here the text may stand on a page: a machine without Liberation Sans, Arial and Helvetica takes another font.
const widerFont = 1.15

// width returns the room that the item takes.
func (i legendItem) width(style draw.TextStyle) vg.Length {
	return thumbWidth + thumbGap + widerFont*style.Width(i.text) + itemGap
}

// layout breaks the legend into rows.
func layout(items []legendItem, style draw.TextStyle, room vg.Length) [][]legendItem {
	var rows [][]legendItem
	used := room + 1
	for _, item := range items {
		if used+item.width(style)-itemGap > room {
			rows = append(rows, nil)
			used = 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], item)
		used += item.width(style)
	}
	return rows
}

// drawLegend draws the rows from the top down.
func drawLegend(c draw.Canvas, rows [][]legendItem, style draw.TextStyle) {
	style.YAlign = draw.YCenter
	for i, row := range rows {
		at := vg.Point{X: 0, Y: c.Max.Y - rowHeight*(vg.Length(i)+0.5)}
		for _, item := range row {
			item.draw(c, at)
			c.FillText(style, vg.Point{X: at.X + thumbWidth + thumbGap, Y: at.Y}, item.text)
			at.X += item.width(style)
		}
	}
}
