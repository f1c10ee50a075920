package csvactions

import (
	"context"
	"io"

	"github.com/the-edge-agent/tea/host/internal/builtin/fileroot"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Bundle gives the bundle csv, which reads files below workDir unless the
// workflow's settings.file say otherwise.
func Bundle(version, workDir string) *tea.Bundle {
	return &tea.Bundle{
		Name: "csv", Version: version, Description: "Reads and writes CSV text.",
		Settings: map[string]*schema.Schema{fileroot.SettingsKey: schema.Of[fileroot.Settings]()},
		Open: func(_ context.Context, settings tea.Settings) (any, error) {
			files, err := fileroot.OpenLazily(settings, workDir)
			if err != nil {
				return nil, err
			}
			return &instance{files: files}, nil
		},
		Actions: []tea.Action{
			tea.NewMethod("csv.parse", "Reads CSV text or a CSV file into rows.", (*instance).parse, tea.Idempotent()),
			tea.NewAction("csv.stringify", "Writes rows as CSV text.", stringifyAction, tea.Idempotent()),
		},
	}
}

type instance struct{ files *fileroot.Lazy }

var _ io.Closer = (*instance)(nil)

// Close releases the file root.
func (i *instance) Close() error { return i.files.Close() }

type parseParams struct {
	Text      *string  `json:"text,omitempty" doc:"the CSV text; either this or path"`
	Path      string   `json:"path,omitempty" doc:"a file below the file root (settings.file.root), instead of text"`
	Delimiter string   `json:"delimiter,omitempty" default:"," minLength:"1" doc:"the character between fields, such as ; or a tab"`
	HasHeader bool     `json:"has_header,omitempty" default:"true" doc:"whether the first row names the columns"`
	Headers   []string `json:"headers,omitempty" doc:"names for the columns; with has_header they replace the first row's"`
}

type parseResult struct {
	Success  bool     `json:"success" doc:"always true"`
	Data     []any    `json:"data" doc:"one object for each row, or one array where the columns have no names; fields stay strings"`
	Headers  []string `json:"headers" doc:"the columns' names, empty where there are none"`
	RowCount int      `json:"row_count" doc:"how many rows there are, without the header"`
}

func (i *instance) parse(_ context.Context, _ *tea.Request, p parseParams) (parseResult, error) {
	if (p.Text == nil) == (p.Path == "") {
		return parseResult{}, tea.Errorf(tea.ValidationError, "csv.parse needs either text or path")
	}
	var text string
	if p.Text != nil {
		text = *p.Text
	} else {
		root, err := i.files.Root()
		if err != nil {
			return parseResult{}, err
		}
		raw, err := root.ReadFile(p.Path, i.files.MaxBytes)
		if err != nil {
			return parseResult{}, err
		}
		text = string(raw)
	}
	table, err := Parse(text, Options{Delimiter: p.Delimiter, HasHeader: p.HasHeader, Headers: p.Headers})
	if err != nil {
		return parseResult{}, err
	}
	headers := table.Headers
	if headers == nil {
		headers = []string{}
	}
	return parseResult{Success: true, Data: table.Data(), Headers: headers, RowCount: len(table.Rows)}, nil
}

type stringifyParams struct {
	Data      []any    `json:"data" doc:"the rows: objects, or arrays"`
	Headers   []string `json:"headers,omitempty" doc:"the columns in order; other members are left out. Default: the member names of all rows, sorted; none for arrays"`
	Delimiter string   `json:"delimiter,omitempty" default:"," minLength:"1" doc:"the character between fields, such as ; or a tab"`
}

type stringifyResult struct {
	Success  bool   `json:"success" doc:"always true"`
	Text     string `json:"text" doc:"the CSV text, lines ended by CRLF; null is empty, lists and objects are written as JSON"`
	RowCount int    `json:"row_count" doc:"how many rows were written, without the header"`
}

func stringifyAction(_ context.Context, _ *tea.Request, p stringifyParams) (stringifyResult, error) {
	delimiter, err := delimiterOf(p.Delimiter)
	if err != nil {
		return stringifyResult{}, err
	}
	rows, err := value.From(p.Data)
	if err != nil {
		return stringifyResult{}, tea.Errorf(tea.ValidationError, "csv.stringify: data: %w", err)
	}
	text, err := stringify(rows.([]any), p.Headers, delimiter)
	if err != nil {
		return stringifyResult{}, err
	}
	return stringifyResult{Success: true, Text: text, RowCount: len(p.Data)}, nil
}
