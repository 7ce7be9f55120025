package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSONLines prints one JSON object per line. Each carries the schema's name first, so that a reader knows what the
// other keys mean.
type JSONLines struct {
	w      io.Writer
	schema string
}

// NewJSONLines returns a printer of objects of the given schema, as "stillwater.demo.v1"; an empty one is left out.
func NewJSONLines(w io.Writer, schema string) *JSONLines {
	return &JSONLines{w: w, schema: schema}
}

// Write prints v, which must marshal into an object, as one line in one Write.
func (j *JSONLines) Write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("print JSON line: %w", err)
	}
	if len(text) < 2 || text[0] != '{' {
		return fmt.Errorf("print JSON line: %T is no object: give a struct or a map", v)
	}
	line := text
	if j.schema != "" {
		name, err := json.Marshal(j.schema)
		if err != nil {
			return fmt.Errorf("print JSON line: %w", err)
		}
		line = append([]byte(`{"schema":`), name...)
		if len(text) > 2 {
			line = append(line, ',')
		}
		line = append(line, text[1:]...)
	}
	if _, err := j.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("print JSON line: %w", err)
	}
	return nil
}
