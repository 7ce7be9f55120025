package published

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// compressed is the data: 4,905 rows, a tenth of their size.
//
//go:embed breakwater-osdi20.csv.gz
var compressed []byte

// header names the columns.
var header = []string{"figure", "panel", "scheme", "x_name", "x", "y_name", "y", "unit", "error"}

// ParseError says on which line the data is not as it must be.
type ParseError struct {
	Line int // from 1
	Err  error
}

// Error names the line.
func (e *ParseError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *ParseError) Unwrap() error { return e.Err }

// Rows returns all points in the order of the data: by figure, panel and curve. The slice is the caller's.
func Rows() ([]Row, error) {
	rows, err := load()
	return slices.Clone(rows), err
}

var load = sync.OnceValues(func() ([]Row, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	rows, err := Parse(r)
	if err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	return rows, nil
})

// Parse reads rows of comma-separated values under the header that the data has. The first fault ends it with a ParseError.
func Parse(r io.Reader) ([]Row, error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord = len(header)
	c.ReuseRecord = true
	var rows []Row
	for first := true; ; first = false {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			if first {
				return nil, &ParseError{1, errors.New("no header")}
			}
			return rows, nil
		}
		if err != nil {
			return nil, readError(err)
		}
		line, _ := c.FieldPos(0)
		if first {
			if !slices.Equal(record, header) {
				return nil, &ParseError{line, fmt.Errorf("header %q: want %q", record, header)}
			}
			continue
		}
		row, err := parseRow(record)
		if err != nil {
			return nil, &ParseError{line, err}
		}
		row.Line = line
		rows = append(rows, row)
	}
}

// readError gives a fault of the CSV itself the form of all others; one of the reader has no line and stays as it is.
func readError(err error) error {
	var fault *csv.ParseError
	if errors.As(err, &fault) {
		return &ParseError{fault.Line, fault.Err}
	}
	return fmt.Errorf("read: %w", err)
}

func parseRow(record []string) (Row, error) {
	for i, text := range record {
		record[i] = strings.Clone(text) // the reader uses its buffer again
	}
	row := Row{
		Figure: record[0], Panel: record[1], Scheme: record[2], XName: XName(record[3]), X: record[4],
		Metric: Metric(record[5]), Unit: record[7], Error: math.NaN(),
	}
	for i, text := range record[:3] {
		if text == "" {
			return Row{}, fmt.Errorf("%s is empty", header[i])
		}
	}
	known, found := units[row.Metric]
	if !found {
		return Row{}, fmt.Errorf("unknown metric %q", row.Metric)
	}
	if _, found := known[row.Unit]; !found {
		return Row{}, fmt.Errorf("unknown unit %q of %s", row.Unit, row.Metric)
	}
	var err error
	if row.XValue, err = parseX(row.XName, row.X); err != nil {
		return Row{}, err
	}
	if row.Value, err = number(record[6]); err != nil {
		return Row{}, fmt.Errorf("y: %w", err)
	}
	if record[8] != "" {
		if row.Error, err = number(record[8]); err != nil {
			return Row{}, fmt.Errorf("error: %w", err)
		}
	}
	return row, nil
}

// parseX checks X against what its axis can say.
func parseX(name XName, text string) (float64, error) {
	nan := math.NaN()
	switch name {
	case DemandMrps, DemandKrps, Clients, TimeS, ThroughputKrps:
		v, err := number(text)
		if err != nil {
			return nan, fmt.Errorf("x: %w", err)
		}
		return v, nil
	case ServiceShape:
		if !slices.Contains([]string{"constant", "exponential", "bimodal"}, text) {
			return nan, fmt.Errorf("x: unknown service distribution %q", text)
		}
		return nan, nil
	case AlphaBeta:
		_, _, err := ParseAlphaBeta(text)
		return nan, err
	case NoX:
		if text != "" {
			return nan, fmt.Errorf("x: %q on no axis", text)
		}
		return nan, nil
	}
	return nan, fmt.Errorf("unknown axis %q", name)
}

// ParseAlphaBeta reads the X of AlphaBeta, as "a0.1%/b2%", into shares of 1.
func ParseAlphaBeta(text string) (alpha, beta float64, err error) {
	a, b, _ := strings.Cut(text, "/")
	if alpha, err = percent(a, "a"); err == nil {
		beta, err = percent(b, "b")
	}
	if err != nil {
		return 0, 0, fmt.Errorf("x: %q is not as a0.1%%/b2%%: %w", text, err)
	}
	return alpha, beta, nil
}

func percent(text, prefix string) (float64, error) {
	middle, found := strings.CutPrefix(text, prefix)
	middle, ended := strings.CutSuffix(middle, "%")
	if !found || !ended {
		return 0, fmt.Errorf("%q lacks %s or %%", text, prefix)
	}
	v, err := number(middle)
	return v / 100, err
}

// number reads a finite number that is not negative; no column has others.
func number(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%q is no number from 0 on", text)
	}
	return v, nil
}
