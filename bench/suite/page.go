package suite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// names are those of all figures, sorted.
func (k Kinds) names() []string { return slices.Sorted(maps.Keys(k)) }

// page is the report: an experiment a section.
func (s *Suite) page(tables []*Table, o Options) report.Page {
	checks, missed := 0, Missed(tables)
	for _, t := range tables {
		checks += len(t.Checks)
	}
	p := report.Page{
		Title:   s.Title,
		Verdict: fmt.Sprintf("%d of %d checks are met.", checks-missed, checks), Passed: missed == 0, Command: o.Command,
		Facts: append([]report.Fact{
			{Name: "size", Value: o.Size.Name}, {Name: "first seed", Value: strconv.FormatUint(max(o.Seed, 1), 10)}, {Name: "conditions", Value: s.Conditions},
		}, report.MachineFacts()...),
	}
	for _, t := range tables {
		p.Sections = append(p.Sections, t.section())
	}
	return p
}

func (t *Table) section() report.Section {
	s := report.Section{Title: t.ID + ": " + t.Title, Text: t.About}
	s.Charts = t.courses()
	for _, c := range t.Charts {
		s.Charts = append(s.Charts, t.draw(c)...)
	}
	checks := report.DataTable{Title: "Acceptance", Columns: []string{"", "check"}, Text: 2}
	for _, c := range t.Checks {
		word := "ok"
		if !c.Met {
			word = "MISSED"
		}
		checks.Rows = append(checks.Rows, []string{word, c.Text})
	}
	numbers := report.DataTable{Title: "All numbers", Columns: []string{"point", t.suite.Arm}, Text: 2, Folded: true}
	for _, f := range t.Figures {
		if t.has(f) {
			k := t.suite.Kinds.Of(f)
			numbers.Columns = append(numbers.Columns, k.Title+" "+k.Unit)
		}
	}
	for _, r := range t.Rows {
		cells := []string{r.Point(), r.Arm}
		for _, f := range t.Figures {
			if t.has(f) {
				k := t.suite.Kinds.Of(f)
				cells = append(cells, strconv.FormatFloat(r.Mean(f)/k.Divide, 'f', k.Decimals, 64))
			}
		}
		numbers.Rows = append(numbers.Rows, cells)
	}
	s.Tables = []report.DataTable{checks, numbers}
	return s
}

// draw draws a chart for each panel that has more than one place.
func (t *Table) draw(c Chart) (all []report.LineChart) {
	k := t.suite.Kinds.Of(c.Figure)
	var panels []string
	for _, r := range t.Rows {
		if !slices.Contains(panels, r.Panel) {
			panels = append(panels, r.Panel)
		}
	}
	for _, panel := range panels {
		line := report.LineChart{Title: strings.TrimSuffix(c.Title+", "+panel, ", "), XLabel: c.X, YLabel: k.Title, XFormat: report.Count, YFormat: k.Format, LogY: c.LogY}
		places := map[float64]bool{}
		curves := map[string]int{}
		for _, r := range t.Rows {
			if r.Panel != panel {
				continue
			}
			places[r.X] = true
			x := r.X
			if c.Named {
				if !slices.Contains(line.XNames, r.At) {
					line.XNames = append(line.XNames, r.At)
				}
				x = float64(slices.Index(line.XNames, r.At))
			}
			at, found := curves[r.Arm]
			if !found {
				at = len(line.Series)
				curves[r.Arm] = at
				line.Series = append(line.Series, report.Series{Name: r.Arm, Color: at + 1})
			}
			line.Series[at].Points = append(line.Series[at].Points, report.Point{X: x, Y: r.Mean(c.Figure)})
			if y := r.Mean(t.suite.Line); c.Line && len(line.HLines) == 0 {
				line.HLines = []report.HLine{{Y: y, Label: t.suite.LineLabel + " " + t.suite.Kinds.Of(t.suite.Line).Format.Text(y)}}
			}
		}
		if len(places) > 1 {
			all = append(all, line)
		}
	}
	return all
}
