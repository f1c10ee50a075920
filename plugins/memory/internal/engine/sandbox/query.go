package sandbox

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// MaxQuery bounds the length of a query in bytes.
const MaxQuery = 100_000

// The default bounds of a Sandbox.
const (
	defaultRows  = 1000
	defaultBytes = 16 << 20
)

// Bounds returns the sandbox with defaults for missing bounds and with arguments
// in a form that the databases accept.
func Bounds(s store.Sandbox) store.Sandbox {
	if s.MaxRows <= 0 {
		s.MaxRows = defaultRows
	}
	if s.MaxBytes <= 0 {
		s.MaxBytes = defaultBytes
	}
	args := make([]any, len(s.Args))
	for i, arg := range s.Args {
		if n, ok := arg.(sql.NamedArg); ok {
			args[i] = sql.Named(n.Name, bound(n.Value))
		} else {
			args[i] = bound(arg)
		}
	}
	s.Args = args
	return s
}

// bound returns an argument in a form that the databases accept: lists and
// objects as JSON, a json.Number as text.
func bound(arg any) any {
	switch arg := arg.(type) {
	case json.Number:
		return string(arg)
	case []any, map[string]any:
		if text, err := json.Marshal(arg); err == nil {
			return string(text)
		}
	}
	return arg
}

// Named returns the name and the value of an argument; the name is "" for a
// positional argument.
func Named(arg any) (name string, value any) {
	if n, ok := arg.(sql.NamedArg); ok {
		return n.Name, n.Value
	}
	return "", arg
}

// Arguments refuses a query whose parameters differ from the given arguments, by
// name or position.
func Arguments(s store.Sandbox, used map[string]bool) error {
	given := map[string]bool{}
	for i, arg := range s.Args {
		name, _ := Named(arg)
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		given[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !given[name] {
			return tea.Errorf(tea.ValidationError, "SQL: there is no argument for the parameter $%s; %d were given", name, len(given))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !used[name] {
			return tea.Errorf(tea.ValidationError, "SQL: the query has no parameter $%[1]s for the argument %[1]q", name)
		}
	}
	return nil
}

// Check refuses a text before the database sees it: empty, too long, not UTF-8,
// with a NUL (where a C library would stop reading) or with a byte order mark.
func Check(query string) error {
	switch {
	case len(query) > MaxQuery:
		return tea.Errorf(tea.ValidationError, "the query is too long: %d bytes (limit %d)", len(query), MaxQuery)
	case !utf8.ValidString(query):
		return tea.Errorf(tea.ValidationError, "the query is not valid UTF-8")
	case strings.TrimSpace(query) == "":
		return tea.Errorf(tea.ValidationError, "the query is empty")
	}
	for _, odd := range []struct{ text, name string }{{"\x00", "a NUL character"}, {"\ufeff", "a byte order mark"}} {
		if at := strings.Index(query, odd.text); at >= 0 {
			return Invalid(query, at, "the query has "+odd.name)
		}
	}
	return nil
}

// Invalid returns the error for an invalid query. The offset is in bytes, or
// negative if unknown.
func Invalid(query string, offset int, message string) error {
	if offset < 0 || offset > len(query) {
		return tea.Errorf(tea.ValidationError, "SQL: %s", message)
	}
	line, column := position(query, offset)
	e := tea.Errorf(tea.ValidationError, "SQL, %d:%d: %s", line, column, message)
	e.Details = map[string]any{"line": line, "column": column}
	return e
}

// Denied returns the error for a query that requests something forbidden: what,
// and the rule against it. The offset is as for Invalid.
func Denied(s store.Sandbox, query string, offset int, what, rule string) error {
	tables := Names(s)
	hint := "there are no tables to read"
	if len(tables) > 0 {
		hint = "the tables to read are " + strings.Join(tables, ", ")
	}
	where := ""
	if offset >= 0 && offset <= len(query) {
		line, column := position(query, offset)
		where = fmt.Sprintf(", %d:%d", line, column)
	}
	e := tea.Errorf(tea.ValidationError, "SQL%s: %s: %s; %s", where, what, rule, hint)
	e.Details = map[string]any{"refused": what, "tables": anyOf(tables)}
	return e
}

// Names returns the names of all tables and views of the sandbox.
func Names(s store.Sandbox) []string {
	names := slices.Clone(s.Tables)
	for _, v := range s.Views {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// With returns a WITH that defines the sandbox's views, or "" if there are none.
// A statement after it that begins with a WITH must be in parentheses.
func With(s store.Sandbox, more ...string) string {
	var entries []string
	for _, v := range s.Views {
		columns := make([]string, len(v.Columns))
		for i, c := range v.Columns {
			columns[i] = Quoted(c.Name)
		}
		entries = append(entries, Quoted(v.Name)+"("+strings.Join(columns, ", ")+") AS ("+v.Query+")")
	}
	if entries = append(entries, more...); len(entries) == 0 {
		return ""
	}
	return "WITH " + strings.Join(entries, ", ") + " "
}

// Quoted quotes an identifier of SQL.
func Quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func anyOf(names []string) []any {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}

// position returns the line and column of an offset, from 1.
func position(text string, offset int) (line, column int64) {
	before := text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return int64(strings.Count(before, "\n")) + 1, int64(utf8.RuneCountInString(before[start:])) + 1
}

// Fold returns a name as the databases compare it: they fold ASCII letters only.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}
