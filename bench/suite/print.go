package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// print prints a table as it was asked for.
func (t *Table) print(w io.Writer, o Options) error {
	if o.JSON {
		return t.WriteJSON(w)
	}
	return t.WriteText(w, o.Colour)
}

// WriteText writes the table for a person.
func (t *Table) WriteText(w io.Writer, colour bool) error {
	columns := []report.Column{{Title: "point", Left: true, Width: 8}, {Title: t.suite.Arm, Left: true, Width: 10}}
	for _, r := range t.Rows {
		columns[0].Width = max(columns[0].Width, utf8.RuneCountInString(r.Point()))
		columns[1].Width = max(columns[1].Width, len(r.Arm))
	}
	var figures []string
	for _, f := range t.Figures {
		if !t.has(f) {
			continue
		}
		figures = append(figures, f)
		k := t.suite.Kinds.Of(f)
		columns = append(columns, report.Column{Title: k.Title, Unit: k.Unit, Width: k.Width, Decimals: k.Decimals, Divide: k.Divide})
	}
	var text bytes.Buffer
	table := report.NewTable(&text, colour, columns...)
	fmt.Fprintf(&text, "%s  %s\n%s\nsize %s; %s\n\n", t.ID, t.Title, t.About, t.Size.Name, t.suite.Conditions)
	for _, r := range t.Rows {
		cells := []any{r.Point(), r.Arm}
		for _, f := range figures {
			cells = append(cells, r.Mean(f))
		}
		if err := table.Row(cells...); err != nil {
			return err
		}
	}
	text.WriteByte('\n')
	for _, c := range t.Checks {
		text.WriteString(c.String() + "\n")
	}
	text.WriteByte('\n')
	_, err := w.Write(text.Bytes())
	return err
}

// has reports whether any line has a figure: some are of the full size alone.
func (t *Table) has(figure string) bool {
	for _, r := range t.Rows {
		if !math.IsNaN(r.Mean(figure)) {
			return true
		}
	}
	return false
}

// WriteJSON writes an object for each line: experiment, point, arm, and every figure by its name. Checks are objects too.
func (t *Table) WriteJSON(w io.Writer) error {
	lines := report.NewJSONLines(w, t.suite.Schema)
	for _, r := range t.Rows {
		object := &ordered{}
		object.add("experiment", t.ID)
		object.add("point", r.Point())
		object.add(t.suite.Arm, r.Arm)
		object.add("seed_count", len(r.Samples))
		for _, f := range t.suite.Kinds.names() {
			if v := r.Mean(f); !math.IsNaN(v) && !math.IsInf(v, 0) {
				object.add(f, v)
			}
		}
		if err := lines.Write(object); err != nil {
			return err
		}
	}
	for _, c := range t.Checks {
		object := &ordered{}
		object.add("experiment", t.ID)
		object.add("check", c.Text)
		object.add("met", c.Met)
		if err := lines.Write(object); err != nil {
			return err
		}
	}
	return nil
}

// ordered is an object whose keys stay in order.
type ordered struct{ keys, values []string }

func (o *ordered) add(key string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("suite: " + err.Error()) // strings and finite numbers only
	}
	o.keys, o.values = append(o.keys, key), append(o.values, string(text))
}

// MarshalJSON writes it.
func (o *ordered) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(key) + ":" + o.values[i])
	}
	return []byte("{" + b.String() + "}"), nil
}
