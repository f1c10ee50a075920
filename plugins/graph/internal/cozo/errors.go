//go:build cozo && cgo

package cozo

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// failure is an error of the engine or of the crate. See
// plugins/graph/cozo/src/failure.rs.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Help    string `json:"help"`
	Offset  *int   `json:"offset"`
}

func (f *failure) Error() string {
	text := f.Message
	if f.Help != "" {
		text += " (" + f.Help + ")"
	}
	return text
}

func parseFailure(text []byte) error {
	f := &failure{}
	if err := json.Unmarshal(text, f); err != nil {
		return fmt.Errorf("read the engine's error: %w", err)
	}
	return f
}

// opening converts an error of opening a database, with its path.
func opening(path string, err error) error {
	var f *failure
	if errors.As(err, &f) {
		named := *f
		named.Message = path + ": " + f.Message
		err = &named
	}
	return fault(err)
}

// isForeign reports whether a file belongs to another program or to a newer version.
func isForeign(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.Code == "storage::foreign" || f.Code == "storage::newer")
}

// fault converts an error of a script of this package.
func fault(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	switch f.Code {
	case "storage::full":
		return tea.Errorf(tea.ResourceExhausted, "the disk of the graph is full: %w", err)
	case "storage::corrupt", corruptValue, "engine::panic":
		return store.Unusable(tea.InternalError, "restore a backup with graph.restore", "the graph's database is damaged: %w", err)
	case "storage::foreign":
		return store.Unusable(tea.ValidationError, "set another settings.graph.path, or restore a backup", "%w", err)
	case "storage::newer":
		return tea.Errorf(tea.ValidationError, "%w; update the graph plugin", err)
	case "storage::busy":
		e := tea.Errorf(tea.ConnectionError, "another program uses the graph's database: %w", err)
		e.Retryable = true
		return e
	}
	return tea.Errorf(tea.InternalError, "the graph's database: %w", err)
}

// corruptValue is the code of a stored value that the engine cannot read.
const corruptValue = "eval::corrupt_value_blob"

// ofGraph lists the errors of a query that uses the graph's relations as rules, or like
// relations of another database, with columns by position.
var ofGraph = []string{"eval::rule_not_found", "query::relation_not_found", "eval::named_field_not_found"}

// unnamed matches a relation of the graph that lacks the asterisk of a stored relation,
// or the names of columns.
var unnamed = regexp.MustCompile(`(^|[^*~\w])(entity|relation)\s*\{|\*(entity|relation)\s*\[`)

// advised returns the failure with a hint that applies to a query. The engine's hints
// name operators that are refused.
func (f *failure) advised(script string) *failure {
	advised := *f
	before := script
	if f.Offset != nil && *f.Offset <= len(script) {
		before = script[:*f.Offset]
	}
	line := before[strings.LastIndexByte(before, '\n')+1:]
	switch {
	case slices.Contains(ofGraph, f.Code), (f.Code == "parser::pest" || f.Code == "eval::rule_arity_mismatch") && unnamed.MatchString(script):
		advised.Help = "the graph has the relations *entity{namespace, id, type, properties, ...} and *relation{namespace, from_id, rel_type, to_id, ...}; name the columns that the query uses, such as *entity{id, type}"
	case f.Code == "eval::index_not_found":
		advised.Help = "the graph has no such index; use graph.vector_search or graph.search, or compute distances from the column embedding of *entity{id, embedding}"
	case strings.Contains(f.Help, "::"), strings.HasSuffix(strings.TrimRight(line, "abcdefghijklmnopqrstuvwxyz_ "), "::"):
		advised.Help = ""
	default:
		advised.Help = strings.ReplaceAll(f.Help, "`:sleep`, ", "")
	}
	return &advised
}

// queryFault converts an error of a user's query.
func queryFault(script string, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	kind, _, _ := strings.Cut(f.Code, "::")
	err = f.advised(script)
	switch {
	case f.Code == "eval::timeout":
		return tea.Errorf(tea.Timeout, "the query exceeded its time limit; narrow it, or raise timeout_seconds")
	case f.Code == "eval::mem_budget_exceeded":
		return tea.Errorf(tea.ResourceExhausted, "the query exceeded its memory limit; narrow it, or raise settings.graph.memory_mb")
	case f.Code == "query::refused":
		return tea.Errorf(tea.PermissionDenied, "%w", err)
	case f.Code == "storage::read_only":
		return tea.Errorf(tea.PermissionDenied, "the query changes the graph; set read_only: false")
	case f.Code == "query::stuck":
		e := tea.Errorf(tea.ResourceExhausted, "%w; wait for them, or restart the plugin", err)
		e.Retryable = true
		return e
	case f.Code == "engine::panic":
		return tea.Errorf(tea.QueryError, "the query failed in the engine: %w", err)
	case kind == "storage", f.Code == corruptValue:
		return fault(err)
	}
	e := tea.Errorf(tea.QueryError, "datalog: %w", err)
	if f.Offset != nil && *f.Offset <= len(script) {
		line := 1 + strings.Count(script[:*f.Offset], "\n")
		e.Details = map[string]any{"offset": int64(*f.Offset), "line": int64(line)}
	}
	return e
}
