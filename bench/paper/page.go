package paper

import (
	"fmt"
	"strconv"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// page is the report as one file: the summary first, then figure by figure.
func (r *Report) page(o Options) report.Page {
	p := report.Page{
		Title: "The figures of the Breakwater paper, drawn again", Verdict: r.Verdict, Passed: r.Passed, Command: o.Command,
		Facts: []report.Fact{
			{Name: "runs", Value: strconv.Itoa(len(r.Plan.Points))},
			{Name: "size", Value: fmt.Sprintf("%s: %d requests after %v of warm-up", r.Plan.Size.Name, r.Plan.Size.Requests, r.Plan.Size.Warmup)},
			{Name: "seed", Value: strconv.FormatUint(o.Seed, 10)},
			{Name: "published", Value: "Cho et al., OSDI 2020: 4,905 points, read off the vector drawings"},
		},
		Sections: r.overview(),
	}
	if o.Costs != "" {
		p.Facts = append(p.Facts, report.Fact{Name: "costs, the same for all", Value: o.Costs})
	}
	p.Facts = append(p.Facts, report.MachineFacts()...)
	for _, f := range figures {
		var all []Comparison
		for _, c := range r.Comparisons {
			if c.Figure == f.name {
				all = append(all, c)
			}
		}
		if len(all) > 0 {
			p.Sections = append(p.Sections, r.section(f, all))
		}
	}
	return p
}

// overview is what all figures come to.
func (r *Report) overview() []report.Section {
	s := report.Section{
		Title: "What it comes to",
		Text: fmt.Sprintf("The published Breakwater is held against %s, whose law produced the figures. It alone is judged point by point; the others are judged by "+
			"their order, their recovery and their collapse.", BreakwaterArtifact),
	}
	judged, every := dataTable("Points that are judged", summaryColumns), dataTable("All metrics and schemes", summaryColumns)
	for _, line := range r.Summaries {
		every.Rows = append(every.Rows, line.cells())
		if line.Judged > 0 {
			judged.Rows = append(judged.Rows, line.cells())
		}
	}
	every.Folded = len(judged.Rows) > 0
	for _, t := range []report.DataTable{judged, every} {
		if len(t.Rows) > 0 {
			s.Tables = append(s.Tables, t)
		}
	}
	if len(r.Recoveries) > 0 {
		t := dataTable("F7: recovery from the spike, and the lowest window after it", recoveryColumns)
		for _, p := range r.Recoveries {
			t.Rows = append(t.Rows, p.cells())
		}
		s.Tables = append(s.Tables, t)
	}
	s.Tables = append(s.Tables, checkTables(r.Checks)...)
	return []report.Section{s}
}

// checkTables are one table per kind of check, with what is not met in the open and the rest folded.
func checkTables(all []Check) (tables []report.DataTable) {
	for _, kind := range checkKinds {
		met := report.DataTable{Columns: []string{"check"}, Folded: true}
		missed := report.DataTable{Columns: []string{"check"}}
		for _, c := range all {
			switch {
			case c.Kind != kind:
			case c.Met:
				met.Rows = append(met.Rows, []string{c.Text})
			default:
				missed.Rows = append(missed.Rows, []string{c.Text})
			}
		}
		count := len(met.Rows) + len(missed.Rows)
		met.Title = fmt.Sprintf("Checks of %s: %d of %d met", kind, len(met.Rows), count)
		missed.Title = fmt.Sprintf("Checks of %s: not met", kind)
		missed.Folded = len(missed.Rows) > missedShown
		if count > 0 {
			tables = append(tables, met)
		}
		if len(missed.Rows) > 0 {
			tables = append(tables, missed)
		}
	}
	return tables
}

// missedShown is how many unmet checks of a kind are shown in the open: more would hide the charts.
const missedShown = 15

// section is one figure.
func (r *Report) section(f figure, all []Comparison) report.Section {
	s := report.Section{Title: f.name + ": " + f.title, Charts: append(r.charts(f, all), residualCharts(f, all)...)}
	for _, why := range reasons(all) {
		s.Text += why + " "
	}
	switch f.name {
	case "F7":
		t := dataTable("Stage by stage", stageColumns)
		for _, st := range stagesOf(all) {
			t.Rows = append(t.Rows, st.cells())
		}
		s.Tables = append(s.Tables, t)
		return s
	case "F11":
		t := dataTable("The clouds", cloudColumns)
		for _, k := range cloudsOf(all) {
			t.Rows = append(t.Rows, k.cells())
		}
		s.Tables = append(s.Tables, t)
	}
	t := dataTable("Published points beside ours", rowColumns)
	t.Folded = true
	for i, c := range numbered(all) {
		t.Rows = append(t.Rows, c.cells(i+1))
	}
	s.Tables = append(s.Tables, t)
	return s
}

// dataTable takes its columns from those of a text table. The text columns of all of them stand first.
func dataTable(title string, columns []report.Column) report.DataTable {
	t := report.DataTable{Title: title}
	for i, c := range columns {
		if c.Left && i == t.Text {
			t.Text++
		}
		name := c.Title
		switch {
		case c.Unit == "":
		case name == "":
			name = c.Unit
		default:
			name += ", " + c.Unit
		}
		t.Columns = append(t.Columns, name)
	}
	return t
}
