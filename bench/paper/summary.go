package paper

import (
	"fmt"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// summaryColumns are the columns of Summary.cells.
var summaryColumns = []report.Column{
	{Title: "figure", Width: 6, Left: true}, {Title: "metric", Width: 14, Left: true}, {Title: "curve", Width: 32, Left: true},
	{Title: "most off at", Width: 22, Left: true}, {Title: "points", Width: 6}, {Title: "median off", Unit: "%", Width: 10},
	{Title: "most off", Unit: "%", Width: 9}, {Title: "judged", Width: 6}, {Title: "within", Width: 6},
}

// cells are the cells of a summary's line.
func (s Summary) cells() []string {
	judged, within := "", ""
	if s.Judged > 0 {
		judged, within = fmt.Sprint(s.Judged), fmt.Sprint(s.Within)
	}
	middle := percent(s.Median)
	if middle[0] == '+' {
		middle = middle[1:] // of sizes
	}
	return []string{s.Figure, s.Metric.String(), s.Curve, s.At, fmt.Sprint(s.Compared), middle, percent(s.Largest), judged, within}
}

// recoveryColumns are the columns of RecoveryPair.cells.
var recoveryColumns = []report.Column{
	{Title: "scheme", Width: 19, Left: true}, {Title: "recovery", Unit: "published", Width: 9}, {Title: "recovery", Unit: "ours", Width: 9},
	{Title: "lowest", Unit: "published", Width: 9}, {Title: "lowest", Unit: "ours", Width: 9},
}

// cells are the cells of a pair's line.
func (p RecoveryPair) cells() []string {
	texts := func(r Recovery) (string, string) {
		recovered := "never"
		if r.Time >= 0 {
			recovered = r.Time.String()
		}
		return recovered, DropRatio.text(r.Dip)
	}
	recovered, dip := texts(p.Ours)
	recoveredPublished, dipPublished := dash, dash
	if p.HasPublished {
		recoveredPublished, dipPublished = texts(p.Published)
	}
	return []string{string(p.Scheme), recoveredPublished, recovered, dipPublished, dip}
}

// summary prints what all figures come to.
func (s *show) summary(r *Report) error {
	if err := s.say("\nSummary: how far ours is from the published figures"); err != nil {
		return err
	}
	t := report.NewTable(s.out, s.options.Colour, summaryColumns...)
	for _, line := range r.Summaries {
		cells := anys(line.cells())
		if line.Within < line.Judged {
			cells[len(cells)-1] = report.Cell{Value: cells[len(cells)-1], Tone: report.Bad}
		}
		if err := t.Row(cells...); err != nil {
			return err
		}
	}
	if len(r.Recoveries) > 0 {
		if err := s.say("\nF7: until goodput is back at %.0f %% of what it was before the spike, and the lowest window after it", 100*recoveredShare); err != nil {
			return err
		}
		t := report.NewTable(s.out, s.options.Colour, recoveryColumns...)
		for _, p := range r.Recoveries {
			if err := t.Row(anys(p.cells())...); err != nil {
				return err
			}
		}
	}
	return s.checks(r.Checks)
}

// checks prints how many of each kind are met, those of few in words, and what is not.
func (s *show) checks(all []Check) error {
	for _, line := range checkLines(all) {
		if err := s.say("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// checkLines says of each kind of check how many are met, and names those that are not.
func checkLines(all []Check) (lines []string) {
	for _, kind := range checkKinds {
		met, count := 0, 0
		var missed []string
		for _, c := range all {
			if c.Kind != kind {
				continue
			}
			count++
			if c.Met {
				met++
			} else {
				missed = append(missed, "  not met: "+c.Text)
			}
		}
		if count > 0 {
			lines = append(lines, fmt.Sprintf("\nChecks of %s: %d of %d met", kind, met, count))
			lines = append(lines, missed...)
		}
	}
	return lines
}
