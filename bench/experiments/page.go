package experiments

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// allFigures are their names, sorted.
func allFigures() []string { return slices.Sorted(maps.Keys(kinds)) }

// page is the report: an experiment a section.
func page(tables []*Table, o Options) report.Page {
	checks, missed := 0, Missed(tables)
	for _, t := range tables {
		checks += len(t.Checks)
	}
	p := report.Page{
		Title:   "Experiments of overload control",
		Verdict: fmt.Sprintf("%d of %d checks are met.", checks-missed, checks), Passed: missed == 0, Command: o.Command,
		Facts: append([]report.Fact{
			{Name: "size", Value: o.Size.Name}, {Name: "first seed", Value: strconv.FormatUint(max(o.Seed, 1), 10)}, {Name: "costs", Value: costs()},
		}, report.MachineFacts()...),
	}
	for _, t := range tables {
		p.Sections = append(p.Sections, t.section())
	}
	return p
}

func (t *Table) section() report.Section {
	s := report.Section{Title: t.ID + ": " + t.Title, Text: t.About}
	for _, c := range t.charts {
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
	numbers := report.DataTable{Title: "All numbers", Columns: []string{"point", "scheme"}, Text: 2, Folded: true}
	for _, f := range t.figures {
		if t.has(f) {
			k := kindOf(f)
			numbers.Columns = append(numbers.Columns, k.title+" "+k.unit)
		}
	}
	for _, r := range t.Rows {
		cells := []string{r.Point(), r.Scheme}
		for _, f := range t.figures {
			if t.has(f) {
				k := kindOf(f)
				cells = append(cells, strconv.FormatFloat(r.Mean(f)/k.divide, 'f', k.decimals, 64))
			}
		}
		numbers.Rows = append(numbers.Rows, cells)
	}
	s.Tables = []report.DataTable{checks, numbers}
	return s
}

// draw draws a chart for each panel that has more than one place.
func (t *Table) draw(c chart) (all []report.LineChart) {
	k := kindOf(c.figure)
	var panels []string
	for _, r := range t.Rows {
		if !slices.Contains(panels, r.Panel) {
			panels = append(panels, r.Panel)
		}
	}
	for _, panel := range panels {
		line := report.LineChart{Title: c.title + ", " + panel, XLabel: c.x, YLabel: k.title, XFormat: report.Count, YFormat: k.format, LogY: c.logY}
		places := map[float64]bool{}
		curves := map[string]int{}
		for _, r := range t.Rows {
			if r.Panel != panel {
				continue
			}
			places[r.X] = true
			x := r.X
			if c.named {
				if !slices.Contains(line.XNames, r.At) {
					line.XNames = append(line.XNames, r.At)
				}
				x = float64(slices.Index(line.XNames, r.At))
			}
			at, found := curves[r.Scheme]
			if !found {
				at = len(line.Series)
				curves[r.Scheme] = at
				line.Series = append(line.Series, report.Series{Name: r.Scheme, Color: at + 1})
			}
			line.Series[at].Points = append(line.Series[at].Points, report.Point{X: x, Y: r.Mean(c.figure)})
			if slo := r.Mean(figSLO); c.slo && len(line.HLines) == 0 {
				line.HLines = []report.HLine{{Y: slo, Label: "SLO " + report.Duration.Text(slo)}}
			}
		}
		if len(places) > 1 {
			all = append(all, line)
		}
	}
	return all
}
