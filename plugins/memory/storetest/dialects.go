package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Difference is a statement that the dialects answer differently.
type Difference struct {
	Query string
	// Answers are the values of the first column as JSON, or the type of the error.
	Answers map[store.Dialect]string
}

// Differences is the table of the guide "What differs between the engines".
func Differences() []Difference {
	const invalid, failed = string(tea.ValidationError), string(tea.QueryError)
	row := func(query, duckDB, sqlite, postgres string) Difference {
		return Difference{query, map[store.Dialect]string{store.DuckDB: duckDB, store.SQLite: sqlite, store.PostgreSQL: postgres}}
	}
	return []Difference{
		row("SELECT 5 / 2", "2.5", "2", "2"),
		row("SELECT 1 / 0", "null", "null", failed),
		row("SELECT 9223372036854775807 + 1", failed, "9223372036854776000", failed),
		row("SELECT 1e400", invalid, "null", "1"+strings.Repeat("0", 400)),
		row("SELECT CAST('12345678901234567890.12' AS DECIMAL(38,2))", `"12345678901234567890.12"`, "12345678901234567000", `"12345678901234567890.12"`),
		row("SELECT CAST(2.5 AS INTEGER)", "3", "2", "3"),
		row("SELECT CAST('1x' AS INTEGER)", failed, "1", failed),
		row("SELECT ln(0)", failed, "null", failed),
		row("SELECT 1 = 1", "true", "1", "true"),
		row("SELECT '1' = 1", "true", "0", "true"),
		row("SELECT 'A' LIKE 'a'", "false", "1", "false"),
		row("SELECT 'abc' ~ 'b'", "false", invalid, "true"),
		row("SELECT substr('abc', -2)", `"bc"`, `"bc"`, `"abc"`),
		row("SELECT max(1, 2)", "[1]", "2", invalid),
		row("SELECT greatest(1, NULL)", "1", invalid, "1"),
		row("SELECT x FROM (SELECT 2 AS x UNION SELECT NULL UNION SELECT 1) AS t ORDER BY x", "1, 2, null", "null, 1, 2", "1, 2, null"),
		row("SELECT group_concat(x) FROM (SELECT 'a' AS x) AS t", `"a"`, `"a"`, invalid),
		row("SELECT DATE '2026-03-01' + 1", `"2026-03-02"`, invalid, `"2026-03-02"`),
		row(`SELECT CAST('{"a": 1}' AS JSON)`, `{"a":1}`, "0", `{"a":1}`),
		row("SELECT [1, 2]", "[1,2]", invalid, invalid),
		row("SELECT {'a': [1.5, NULL]}::VARIANT", `{"a":[1.5,null]}`, invalid, invalid),
		row("SELECT 'POINT (1 2)'::GEOMETRY", `"POINT (1 2)"`, invalid, invalid),
	}
}

// Dialect asserts that an engine has the answers in the table of the guide.
func Dialect(t *testing.T, dialect store.Dialect, run func(query string, bounds store.Sandbox) (store.Table, error)) {
	t.Helper()
	for _, d := range Differences() {
		table, err := run(d.Query, store.Sandbox{MaxRows: 10, MaxBytes: 100_000, Timeout: time.Minute})
		if got := answer(table, err); got != d.Answers[dialect] {
			t.Errorf("%s on %s: %s, want %s (%v)", d.Query, dialect, got, d.Answers[dialect], err)
		}
	}
}

// TableDialect is Dialect for the queries of a table store.
func TableDialect(t *testing.T, dialect store.Dialect, tables store.TableStore) {
	t.Helper()
	Dialect(t, dialect, func(query string, bounds store.Sandbox) (store.Table, error) {
		a, err := tables.Query(t.Context(), store.TableQuery{SQL: query, MaxRows: bounds.MaxRows, MaxBytes: bounds.MaxBytes, Timeout: bounds.Timeout})
		table := store.Table{Columns: a.Columns}
		for _, row := range a.Rows {
			table.Rows = append(table.Rows, []any{row[a.Columns[0]]})
		}
		return table, err
	})
}

func answer(table store.Table, err error) string {
	if typed := new(tea.Error); errors.As(err, &typed) {
		return string(typed.Type)
	}
	var values []string
	for _, row := range table.Rows {
		text, err := json.Marshal(row[0])
		if err != nil {
			return err.Error()
		}
		values = append(values, string(text))
	}
	return strings.Join(values, ", ")
}
