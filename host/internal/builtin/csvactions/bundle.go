package csvactions

import (
	"context"
	"io"

	"github.com/the-edge-agent/tea/host/internal/builtin/fileroot"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle returns the bundle csv. It reads files below workDir unless
// settings.file of the workflow sets another root.
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
			tea.NewMethod("csv.parse", "Parses CSV text or a CSV file.", (*instance).parse, tea.Idempotent(), tea.Repeated("path")),
			tea.NewAction("csv.stringify", "Writes rows as CSV text.", stringifyAction, tea.Idempotent(), tea.Repeated()),
		},
	}
}

type instance struct{ files *fileroot.Lazy }

var _ io.Closer = (*instance)(nil)

// Close releases the file root.
func (i *instance) Close() error { return i.files.Close() }

type parseParams struct {
	Text      *string  `json:"text,omitempty" doc:"the CSV text; excludes path"`
	Path      string   `json:"path,omitempty" doc:"a file below the file root (settings.file.root); excludes text"`
	Delimiter string   `json:"delimiter,omitempty" default:"," minLength:"1" doc:"the character between fields, such as ; or a tab"`
	HasHeader bool     `json:"has_header,omitempty" default:"true" doc:"whether the first row names the columns"`
	Headers   []string `json:"headers,omitempty" doc:"column names; with has_header they replace those in the first row"`
}

type parseResult struct {
	Success  bool     `json:"success" doc:"always true"`
	Data     []any    `json:"data" doc:"an object for each row, or an array if the columns have no names; fields are strings"`
	Headers  []string `json:"headers" doc:"the column names, empty if there are none"`
	RowCount int      `json:"row_count" doc:"the number of rows, without the header"`
}

func (i *instance) parse(_ context.Context, _ *tea.Request, p parseParams) (parseResult, error) {
	if (p.Text == nil) == (p.Path == "") {
		return parseResult{}, tea.Errorf(tea.ValidationError, "csv.parse needs either text or path")
	}
	var text string
	if p.Text != nil {
		text = *p.Text
	} else {
		root, name, err := i.files.Find(p.Path, fileroot.ReadAccess)
		if err != nil {
			return parseResult{}, err
		}
		raw, err := root.ReadFile(name, i.files.MaxBytes)
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
	Headers   []string `json:"headers,omitempty" doc:"the columns in order; other members are omitted. Default: the member names of all rows, sorted; none for arrays"`
	Delimiter string   `json:"delimiter,omitempty" default:"," minLength:"1" doc:"the character between fields, such as ; or a tab"`
}

type stringifyResult struct {
	Success  bool   `json:"success" doc:"always true"`
	Text     string `json:"text" doc:"the CSV text with CRLF line ends; null is empty, lists and objects are JSON"`
	RowCount int    `json:"row_count" doc:"the number of rows, without the header"`
}

func stringifyAction(_ context.Context, _ *tea.Request, p stringifyParams) (stringifyResult, error) {
	delimiter, err := delimiterOf(p.Delimiter)
	if err != nil {
		return stringifyResult{}, err
	}
	text, err := stringify(p.Data, p.Headers, delimiter)
	if err != nil {
		return stringifyResult{}, err
	}
	return stringifyResult{Success: true, Text: text, RowCount: len(p.Data)}, nil
}
