//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
)

// parsed is the answer of json_serialize_sql.
type parsed struct {
	Failed     bool             `json:"error"`
	Kind       string           `json:"error_type"`
	Message    string           `json:"error_message"`
	Position   string           `json:"position"`
	Statements []map[string]any `json:"statements"`
}

// parse makes DuckDB parse a text without running it, and returns the tree of its
// only SELECT.
func (s *selection) parse(ctx context.Context, text string) (map[string]any, error) {
	var answer string
	if err := s.conn.QueryRowContext(ctx, "SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", text).Scan(&answer); err != nil {
		return nil, err
	}
	var p parsed
	decoder := json.NewDecoder(bytes.NewReader(finite(answer)))
	decoder.UseNumber()
	if err := decoder.Decode(&p); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "SQL: the query cannot be checked: %w", err)
	}
	switch {
	case p.Failed && p.Kind == "not implemented":
		rule := "only a single SELECT is allowed"
		if strings.Contains(sandbox.Fold(text), "pivot") {
			rule += "; a PIVOT needs its values, as in PIVOT t ON name IN ('a', 'b') USING sum(value)"
		}
		return nil, sandbox.Denied(s.bounds, text, -1, "a statement that is not a plain SELECT", rule)
	case p.Failed:
		offset, err := strconv.Atoi(p.Position)
		if err != nil {
			offset = -1
		}
		return nil, sandbox.Invalid(text, offset, p.Message)
	case len(p.Statements) == 0:
		return nil, tea.Errorf(tea.ValidationError, "the query is empty")
	case len(p.Statements) > 1:
		return nil, sandbox.Denied(s.bounds, text, -1, strconv.Itoa(len(p.Statements))+" statements", "only a single SELECT is allowed")
	}
	return p.Statements[0], nil
}
