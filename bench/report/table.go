package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Column is one column of a Table.
type Column struct {
	Title    string
	Unit     string  // stands under the title
	Width    int     // in characters; at least the title's and the unit's
	Decimals int     // of numbers
	Divide   float64 // numbers are divided by it, as 1000 for ns in a column of µs; zero is 1
	Left     bool    // text; numbers stand to the right
}

// Table is a table that grows line by line. The header comes with the first row; widths are fixed from the start, since
// nobody knows the later rows yet. Each row is one Write, so that a Progress can step aside for it.
type Table struct {
	w       io.Writer
	columns []Column
	colour  bool
	started bool
}

// Tone marks a cell as good or bad news; it is a colour where colour was asked for, and nothing elsewhere.
type Tone uint8

// The tones.
const (
	Neutral Tone = iota
	Good
	Bad
)

// Cell is a value with a tone.
type Cell struct {
	Value any
	Tone  Tone
}

// The escape sequences in use. Bold and two colours that read on light and dark terminals.
const (
	sgrBold  = "\x1b[1m"
	sgrDim   = "\x1b[2m"
	sgrGreen = "\x1b[32m"
	sgrRed   = "\x1b[31m"
	sgrReset = "\x1b[0m"
	gap      = "  "
)

// NewTable returns a table on w.
func NewTable(w io.Writer, colour bool, columns ...Column) *Table {
	t := &Table{w: w, columns: make([]Column, len(columns)), colour: colour}
	for i, c := range columns {
		c.Width = max(c.Width, utf8.RuneCountInString(c.Title), utf8.RuneCountInString(c.Unit))
		if c.Divide == 0 {
			c.Divide = 1
		}
		t.columns[i] = c
	}
	return t
}

// Row prints one line: a value, a Cell, or nil for "does not apply", per column. Missing cells are empty.
func (t *Table) Row(cells ...any) error {
	if len(cells) > len(t.columns) {
		return fmt.Errorf("print row: %d cells for %d columns: name a column for each", len(cells), len(t.columns))
	}
	var b strings.Builder
	if !t.started {
		t.header(&b)
		t.started = true
	}
	for i, c := range t.columns {
		var cell Cell
		if i < len(cells) {
			cell = toCell(cells[i])
		} else {
			cell.Value = ""
		}
		text := pad(c.text(cell.Value), c.Width, c.Left)
		t.put(&b, i, text, map[Tone]string{Good: sgrGreen, Bad: sgrRed}[cell.Tone])
	}
	b.WriteByte('\n')
	return t.write(b.String())
}

// Line prints a sentence between the rows, unchanged.
func (t *Table) Line(text string) error { return t.write(text + "\n") }

// write is one Write of whole lines, without blanks at their ends.
func (t *Table) write(text string) error {
	if _, err := io.WriteString(t.w, text); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// header writes titles, units and a rule.
func (t *Table) header(b *strings.Builder) {
	units := false
	for i, c := range t.columns {
		t.put(b, i, pad(c.Title, c.Width, c.Left), sgrBold)
		units = units || c.Unit != ""
	}
	b.WriteByte('\n')
	if units {
		for i, c := range t.columns {
			t.put(b, i, pad(c.Unit, c.Width, c.Left), sgrDim)
		}
		b.WriteByte('\n')
	}
	for i, c := range t.columns {
		t.put(b, i, strings.Repeat("─", c.Width), sgrDim)
	}
	b.WriteByte('\n')
}

// put writes one padded cell.
func (t *Table) put(b *strings.Builder, i int, text, style string) {
	if i > 0 {
		b.WriteString(gap)
	}
	if !t.colour || style == "" {
		b.WriteString(text)
		return
	}
	b.WriteString(style + text + sgrReset)
}

// toCell accepts a bare value.
func toCell(v any) Cell {
	if c, ok := v.(Cell); ok {
		return c
	}
	return Cell{Value: v}
}

// text writes a value in at most the column's width where that is possible without lying.
func (c Column) text(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case float64:
		return c.number(v)
	case float32:
		return c.number(float64(v))
	case int:
		return c.number(float64(v))
	case int64:
		return c.number(float64(v))
	case uint64:
		return c.number(float64(v))
	case uint32:
		return c.number(float64(v))
	case string:
		return clip(v, c.Width)
	default:
		return clip(fmt.Sprint(v), c.Width)
	}
}

// number writes v with the column's decimals, with fewer where it would not fit, and as 12.3M where even that is too
// wide: a table whose columns shift cannot be read.
func (c Column) number(v float64) string {
	v /= c.Divide
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	for decimals := c.Decimals; decimals >= 0; decimals-- {
		if s := strconv.FormatFloat(v, 'f', decimals, 64); len(s) <= c.Width {
			return s
		}
	}
	return Count.Text(v)
}

// clip shortens text to width characters and marks that it did.
func clip(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width <= 1 {
		return "…"
	}
	return string([]rune(text)[:width-1]) + "…"
}

// pad fills text up to width characters.
func pad(text string, width int, left bool) string {
	fill := strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
	if left {
		return text + fill
	}
	return fill + text
}
