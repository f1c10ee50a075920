package csvactions

import (
	"slices"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Options configure [Parse]. The zero value is for comma-separated rows without
// a header.
type Options struct {
	// Delimiter is one character; "" is a comma, `\t` a tab.
	Delimiter string
	// HasHeader reports whether the first row has the column names.
	HasHeader bool
	// Headers are the column names instead.
	Headers []string
}

// Table is a parsed CSV text.
type Table struct {
	// Headers are the column names, nil if there are none.
	Headers []string
	// Rows all have the length of the header, or of the first row.
	Rows [][]string
}

// Parse parses a CSV text. The error is a validation_error with the line.
func Parse(text string, o Options) (*Table, error) {
	delimiter, err := delimiterOf(o.Delimiter)
	if err != nil {
		return nil, err
	}
	if err := unique(o.Headers, "headers"); err != nil {
		return nil, err
	}
	if !utf8.ValidString(text) {
		return nil, tea.Errorf(tea.ValidationError, "csv: the text is not valid UTF-8")
	}
	r := newReader(text, delimiter)
	table := &Table{Headers: o.Headers, Rows: [][]string{}}
	width, what := len(o.Headers), "headers"
	if o.HasHeader {
		header, line, err := r.next()
		if err != nil {
			return nil, err
		}
		switch {
		case header == nil:
			return table, nil
		case o.Headers != nil && len(header) != len(o.Headers):
			return nil, lineFailure(line, "the header has %d columns, but %d headers were given", len(header), len(o.Headers))
		case o.Headers == nil:
			if err := unique(header, "the header"); err != nil {
				return nil, err
			}
			table.Headers, width, what = header, len(header), "the header"
		}
	}
	return table, table.readRows(r, width, what)
}

func (t *Table) readRows(r *reader, width int, what string) error {
	for {
		row, line, err := r.next()
		if err != nil || row == nil {
			return err
		}
		if width == 0 {
			width, what = len(row), "the first row"
		}
		if len(row) != width {
			return lineFailure(line, "the row has %d fields, %s %d", len(row), what+" has", width)
		}
		t.Rows = append(t.Rows, row)
	}
}

// Data returns the rows in the value model: objects by column name, or arrays
// if the columns have no names.
func (t *Table) Data() []any {
	data := make([]any, len(t.Rows))
	for i, row := range t.Rows {
		if t.Headers == nil {
			list := make([]any, len(row))
			for j, field := range row {
				list[j] = field
			}
			data[i] = list
			continue
		}
		object := make(map[string]any, len(row))
		for j, field := range row {
			object[t.Headers[j]] = field
		}
		data[i] = object
	}
	return data
}

func delimiterOf(text string) (rune, error) {
	switch text {
	case "":
		return ',', nil
	case `\t`:
		return '\t', nil
	}
	d, size := utf8.DecodeRuneInString(text)
	if size != len(text) || d == utf8.RuneError || d == '"' || d == '\r' || d == '\n' {
		return 0, tea.Errorf(tea.ValidationError, "delimiter %q must be one character other than a quote or a line break", text)
	}
	return d, nil
}

func unique(names []string, where string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return tea.Errorf(tea.ValidationError, "csv: duplicate column %[2]q in %[1]s", where, name)
		}
	}
	return nil
}
