package csvactions

import (
	"slices"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Options say how CSV text is read. The zero value reads comma-separated
// rows without a header.
type Options struct {
	// Delimiter is one character; "" is a comma, `\t` a tab.
	Delimiter string
	// HasHeader says that the first row names the columns.
	HasHeader bool
	// Headers name the columns instead.
	Headers []string
}

// Table is what a CSV text holds.
type Table struct {
	// Headers are the columns' names, nil where there are none.
	Headers []string
	// Rows are all as long as the header, or as the first row.
	Rows [][]string
}

// Parse reads a whole CSV text. What is wrong with it is a validation_error
// that names the line.
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

// Data gives the rows in the value model: objects by column name, or arrays
// where the columns have no names.
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
		return 0, tea.Errorf(tea.ValidationError, "delimiter %q: want one character that is no quote and no line break", text)
	}
	return d, nil
}

func unique(names []string, where string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return tea.Errorf(tea.ValidationError, "csv: %s name two columns %q", where, name)
		}
	}
	return nil
}
