package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/stillwater-rpc/stillwater/bench/report"
)

// format is how a command prints its data.
type format string

// The formats; the zero value is text.
const (
	formatText  format = "text"
	formatJSON  format = "json"
	formatJSONL format = "jsonl"
)

// String is the format's name.
func (f *format) String() string {
	if *f == "" {
		return string(formatText)
	}
	return string(*f)
}

// Type names the value in help.
func (f *format) Type() string { return "format" }

// Set reads a format's name.
func (f *format) Set(text string) error {
	return setWord((*string)(f), text, string(formatText), string(formatJSON), string(formatJSONL))
}

// colour is when to print escape sequences.
type colour string

// String is the setting's name.
func (c *colour) String() string {
	if *c == "" {
		return "auto"
	}
	return string(*c)
}

// Type names the value in help.
func (c *colour) Type() string { return "when" }

// Set reads a setting's name.
func (c *colour) Set(text string) error {
	return setWord((*string)(c), text, "auto", "always", "never")
}

// setWord sets one of a few words.
func setWord(to *string, text string, words ...string) error {
	if !slices.Contains(words, text) {
		return fmt.Errorf("it must be one of %s", strings.Join(words, ", "))
	}
	*to = text
	return nil
}

// text reports whether a person reads the output.
func (c *cli) text() bool { return c.format.String() == string(formatText) }

// colours reports whether text on standard output has colours.
func (c *cli) colours() bool {
	switch c.colour {
	case "always":
		return true
	case "never":
		return false
	}
	return c.getenv("NO_COLOR") == "" && isTerminal(c.stdout)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printObject prints the one object that a command has to say, in more lines for json and in one for jsonl.
func (c *cli) printObject(schema string, v any) error {
	if c.format == formatJSONL {
		return c.printLine(schema, v)
	}
	var line, indented bytes.Buffer
	if err := report.NewJSONLines(&line, schema).Write(v); err != nil {
		return err
	}
	if err := json.Indent(&indented, line.Bytes(), "", "  "); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return c.print(indented.String())
}

// printLine prints one object of several as one line.
func (c *cli) printLine(schema string, v any) error {
	return report.NewJSONLines(c.stdout, schema).Write(v)
}

// print writes data.
func (c *cli) print(text string) error {
	if _, err := io.WriteString(c.stdout, text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// columns aligns the cells of its rows; the first column stands to the left, the others to the right.
type columns struct {
	text strings.Builder
	tab  *tabwriter.Writer
}

func newColumns() *columns {
	t := &columns{}
	t.tab = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', tabwriter.AlignRight)
	return t
}

// row adds a row. A tabwriter aligns all columns alike, so the first cell is padded here.
func (t *columns) row(first string, cells ...string) {
	fmt.Fprintf(t.tab, "%-*s\t%s\t\n", firstColumnWidth, first, strings.Join(cells, "\t"))
}

// firstColumnWidth fits the longest name of a row.
const firstColumnWidth = 16

// String ends the table.
func (t *columns) String() string {
	_ = t.tab.Flush() // into memory
	var text strings.Builder
	for line := range strings.Lines(t.text.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return text.String()
}
