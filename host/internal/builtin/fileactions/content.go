package fileactions

import (
	"bytes"
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host/internal/builtin/csvactions"
	"github.com/the-edge-agent/tea/host/internal/builtin/jsonactions"
	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

func toText(data []byte, encoding string) (string, error) {
	switch encoding {
	case "utf-8":
		if !utf8.Valid(data) {
			return "", tea.Errorf(tea.ValidationError, "the file is not valid UTF-8; read it with encoding: latin-1, or base64 if it is not text")
		}
		return string(data), nil
	case "base64":
		return base64.StdEncoding.EncodeToString(data), nil
	}
	runes := make([]rune, len(data)) // latin-1
	for i, c := range data {
		runes[i] = rune(c)
	}
	return string(runes), nil
}

func fromText(text, encoding string) ([]byte, error) {
	switch encoding {
	case "utf-8":
		return []byte(text), nil
	case "base64":
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the content is not base64: %w", err)
		}
		return data, nil
	}
	data := make([]byte, 0, len(text)) // latin-1
	for _, r := range text {
		if r > 0xff {
			return nil, tea.Errorf(tea.ValidationError, "the content contains %q, which latin-1 cannot represent", r)
		}
		data = append(data, byte(r))
	}
	return data, nil
}

func parse(path, text, format string) (any, error) {
	var v any
	var err error
	switch format {
	case "json":
		v, err = jsonactions.Parse([]byte(text))
	case "yaml":
		v, err = parseYAML(path, text)
	case "csv":
		var table *csvactions.Table
		if table, err = csvactions.Parse(text, csvactions.Options{HasHeader: true}); err == nil {
			v = table.Data()
		}
	}
	var typed *tea.Error
	if errors.As(err, &typed) {
		e := tea.Errorf(typed.Type, "%s: %s", path, typed.Message)
		e.Details = typed.Details
		return nil, e
	}
	return v, err
}

// parseYAML parses one YAML document by the rules of workflow files; an empty
// document is null.
func parseYAML(path, text string) (any, error) {
	var found diag.List
	data := bytes.TrimPrefix([]byte(text), []byte("\ufeff"))
	node := source.Parse(path, data, &found)
	if !found.HasErrors() {
		return node.Value(), nil
	}
	first := found[0]
	if first.Code == diagcode.FileEmpty {
		return nil, nil
	}
	e := tea.Errorf(tea.ValidationError, "invalid YAML at line %d, column %d: %s", first.Line, first.Column, first.Message)
	e.Details = map[string]any{"line": first.Line, "column": first.Column}
	return nil, e
}
