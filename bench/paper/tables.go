package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// tables prints a figure: all curves side by side, then each published point beside ours.
func (s *show) tables(f figure, all []Comparison, results []Result) error {
	if err := s.say("\n%s  %s", f.name, f.title); err != nil {
		return err
	}
	switch f.name {
	case "F7":
		if err := s.stages(all); err != nil || !s.options.Windows {
			return err
		}
	case "F11":
		if err := s.clouds(all); err != nil {
			return err
		}
	default:
		if err := s.sideBySide(f, all); err != nil {
			return err
		}
	}
	return s.rows(all)
}

// group is the cells of one plot.
type group struct {
	panel  string
	metric Metric
	scheme Scheme // where a plot per scheme is better; else ""
	cells  []Comparison
}

// title names a plot.
func (g group) title() string {
	title := g.metric.String()
	if g.panel != "-" {
		title = g.panel + ", " + title
	}
	if g.scheme != "" {
		title += ", " + string(g.scheme)
	}
	return title
}

// plots groups what runs showed by panel and metric. The ablation's curves are too many for one plot: there each scheme has its own, and no
// control stands beside the artifact.
func plots(f figure, all []Comparison) []group {
	var groups []group
	for _, c := range all {
		if c.Point < 0 {
			continue
		}
		g := group{panel: c.drawnPanel(), metric: c.Metric}
		if len(f.variants) > 2 {
			g.scheme = c.Scheme
			if c.Scheme == None {
				g.scheme = BreakwaterArtifact
			}
		}
		i := slices.IndexFunc(groups, func(o group) bool { return o.panel == g.panel && o.metric == g.metric && o.scheme == g.scheme })
		if i < 0 {
			i = len(groups)
			groups = append(groups, g)
		}
		groups[i].cells = append(groups[i].cells, c)
	}
	return groups
}

// curves lists the curves of a plot in the order of legends.
func (g group) curves() (names []string) {
	cells := slices.Clone(g.cells)
	slices.SortStableFunc(cells, func(a, b Comparison) int {
		return cmp.Compare(slices.Index(Schemes(), a.Scheme), slices.Index(Schemes(), b.Scheme))
	})
	for _, c := range cells {
		if name := c.curve(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// label names a curve within a plot: where all are of one scheme, by what of it is on.
func (g group) label(curve string) string {
	switch {
	case g.scheme == "":
		return curve
	case curve == string(g.scheme):
		return whole.String()
	}
	return strings.TrimPrefix(curve, string(g.scheme)+" ")
}

// places lists the X of a plot in order: by number, or as they come.
func (g group) places() (cells []Comparison) {
	for _, c := range g.cells {
		if !slices.ContainsFunc(cells, func(o Comparison) bool { return o.sameX(c.Cell) }) {
			cells = append(cells, c)
		}
	}
	slices.SortStableFunc(cells, func(a, b Comparison) int {
		if math.IsNaN(a.X) || math.IsNaN(b.X) {
			return 0
		}
		return cmp.Compare(a.X, b.X)
	})
	return cells
}

func (c Cell) sameX(o Cell) bool { return c.X == o.X || math.IsNaN(c.X) && c.XText == o.XText }

// shortNames fit a column.
var shortNames = strings.NewReplacer(string(BreakwaterArtifact), "bw-artifact", string(BreakwaterPaper), "bw-paper")

// sideBySide prints, for each plot, ours of every curve.
func (s *show) sideBySide(f figure, all []Comparison) error {
	for _, g := range plots(f, all) {
		names := g.curves()
		columns := []report.Column{{Title: "at", Width: 13, Left: true}}
		for _, name := range names {
			columns = append(columns, report.Column{Title: shortNames.Replace(g.label(name)), Width: 8})
		}
		t := report.NewTable(s.out, s.options.Colour, columns...)
		if err := t.Line("\n" + g.title() + " of the runs, " + g.metric.unit()); err != nil {
			return err
		}
		for _, at := range g.places() {
			cells := []any{at.xLabel()}
			for _, name := range names {
				text := ""
				i := slices.IndexFunc(g.cells, func(c Comparison) bool { return c.curve() == name && c.sameX(at.Cell) })
				if i >= 0 {
					text = g.metric.number(g.cells[i].Ours)
				}
				cells = append(cells, text)
			}
			if err := t.Row(cells...); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowColumns are the columns of Comparison.cells.
var rowColumns = []report.Column{
	{Title: "#", Width: 4, Left: true}, {Title: "panel", Width: 13, Left: true}, {Title: "at", Width: 13, Left: true}, {Title: "curve", Width: 31, Left: true},
	{Title: "metric", Width: 14, Left: true}, {Title: "published", Width: 10}, {Title: "± read", Width: 8}, {Title: "ours", Width: 10},
	{Title: "unit", Width: 4, Left: true}, {Title: "off", Unit: "%", Width: 8}, {Title: "allowed", Unit: "%", Width: 7}, {Title: "", Width: 7, Left: true},
}

// rows prints every published row beside ours, and says of which there is nothing to print.
func (s *show) rows(all []Comparison) error {
	t := report.NewTable(s.out, s.options.Colour, rowColumns...)
	if err := t.Line("\npublished beside ours"); err != nil {
		return err
	}
	for i, c := range numbered(all) {
		cells := anys(c.cells(i + 1))
		cells[len(cells)-1] = report.Cell{Value: cells[len(cells)-1], Tone: c.tone()}
		if err := t.Row(cells...); err != nil {
			return err
		}
	}
	for _, why := range reasons(all) {
		if err := t.Line(why); err != nil {
			return err
		}
	}
	return nil
}

// numbered returns the rows that have a run, in the order in which tables and residual plots count them.
func numbered(all []Comparison) (rows []Comparison) {
	for _, c := range all {
		if c.Row != nil && c.Point >= 0 {
			rows = append(rows, c)
		}
	}
	return rows
}

// publishedText marks lower bounds.
func (c Comparison) publishedText() string {
	if c.AtLeast() {
		return "≥" + c.Metric.number(c.Published)
	}
	return c.Metric.number(c.Published)
}

// cells are the cells of a row's line, which has this number.
func (c Comparison) cells(number int) []string {
	allowed, verdict := "", ""
	if c.Judged() {
		allowed, verdict = fmt.Sprintf("%.0f", 100*c.Tolerance), "outside"
		if c.Within() {
			verdict = "ok"
		}
	}
	return []string{
		fmt.Sprint(number), c.Panel, c.xLabel(), c.curve(), c.Metric.String(), c.publishedText(), c.Metric.number(c.Error),
		c.Metric.number(c.Ours), c.Metric.unit(), percent(c.Residual), allowed, verdict,
	}
}

// tone colours the verdict.
func (c Comparison) tone() report.Tone {
	switch {
	case !c.Judged():
		return report.Neutral
	case c.Within():
		return report.Good
	}
	return report.Bad
}

// reasons says how many published rows have no run of their own, and why.
func reasons(all []Comparison) (lines []string) {
	counts := map[string]int{}
	var order []string
	for _, c := range all {
		if c.Why == "" || c.Row == nil {
			continue
		}
		if counts[c.Why] == 0 {
			order = append(order, c.Why)
		}
		counts[c.Why]++
	}
	for _, why := range order {
		lines = append(lines, fmt.Sprintf("%d published rows beside these: %s.", counts[why], why))
	}
	return lines
}
