//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// texts returns a database with a table t of one row: s is a long text, p a
// pattern.
func texts(t *testing.T) *engine.Engine {
	t.Helper()
	driver, err := duckdb.New()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Options{Dir: t.TempDir(), Driver: driver})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	err = e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE TABLE t (s VARCHAR, p VARCHAR, n INTEGER)"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO t VALUES (?, ?, 1)", strings.Repeat("a", 200_000), hostile)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// long is a table of one row whose column l is a long list.
const long = "(SELECT list(range) AS l FROM range(300000))"

const hostile = "%a%a%a%a%a%a%a%a%a%a%b%c"

func ask(t *testing.T, e *engine.Engine, query string, args ...any) (store.Table, error) {
	t.Helper()
	return e.Select(t.Context(), query, store.Sandbox{Tables: []string{"t"}, MaxRows: 10, MaxBytes: 1 << 20, Timeout: time.Minute, Args: args})
}

func TestSelectRefusesQuadraticFunctions(t *testing.T) {
	t.Parallel()
	e := texts(t)
	for _, query := range []string{"SELECT list_intersect(l, l) FROM " + long, "SELECT json_merge_patch(s, s) FROM t"} {
		table, err := ask(t, e, query)
		if typed := new(tea.Error); !errors.As(err, &typed) || typed.Type != tea.ValidationError {
			t.Errorf("%s: %v, %v", query, table.Rows, err)
		}
	}
}

func TestSelectComparesWithPatterns(t *testing.T) {
	t.Parallel()
	e := texts(t)
	for _, query := range []struct {
		text string
		args []any
		want bool
	}{
		{text: "SELECT s LIKE '" + hostile + "' FROM t"},
		{text: "SELECT s LIKE ? FROM t", args: []any{hostile}},
		{text: "SELECT lower(s) LIKE '%' || lower(?) || '%' FROM t", args: []any{"A%A"}, want: true},
		{text: "SELECT s LIKE concat('%', CAST(? AS VARCHAR)) FROM t", args: []any{int64(5)}},
		{text: "SELECT s LIKE 'a_%' FROM t", want: true},
		{text: "SELECT s LIKE '%_b%' FROM t"},
		{text: "SELECT '100% of it' LIKE '%0!% of!%%' ESCAPE '!' FROM t"},
		{text: "SELECT '100% of it' LIKE '%0!% of%' ESCAPE '!' FROM t", want: true},
		{text: "SELECT s ILIKE '%A%' FROM t", want: true},
		{text: "SELECT s ILIKE 'A%A' FROM t", want: true},
		{text: "SELECT s ILIKE NULL IS NULL FROM t", want: true},
		{text: "SELECT s NOT ILIKE ? || '%' FROM t", args: []any{"B"}, want: true},
		{text: "SELECT s GLOB 'a*' FROM t", want: true},
		{text: "SELECT levenshtein(left(s, 200), lower(substr(s, 3, 200))) = 0 FROM t", want: true},
		{text: "SELECT jaro_winkler_similarity('ann', ?) > 0.8 FROM t", args: []any{"anne"}, want: true},
		{text: "SELECT regexp_replace('a1b22', '[0-9]+', '-', 'g') = 'a-b-' FROM t", want: true},
		{text: "SELECT regexp_replace('xay', 'a(.*b)?', '-') = 'x-y' FROM t", want: true},
		{text: "SELECT regexp_extract_all('a=1, b=22', '([a-z])=([0-9]+)', 2) = ['1', '22'] FROM t", want: true},
		{text: "SELECT string_split_regex('a , b;c', ?) = ['a', 'b', 'c'] FROM t", args: []any{` *[,;] *`}, want: true},
		{text: "SELECT list_transform([1, 2], lambda x: x * n + 1) = [2, 3] FROM t", want: true},
		{text: "SELECT list_transform(['a', 'b'], lambda x, i: upper(x) || n || i) = ['A11', 'B12'] FROM t", want: true},
		{text: "SELECT [length(x) FOR x IN ['a', 'bb'] IF x LIKE '%b%' AND length(x) > n] = [2] FROM t", want: true},
		{text: "SELECT list_transform([[1, 2], [3]], lambda a: list_sum(list_transform(a, lambda y: y + 1))) = [5, 4] FROM t", want: true},
		{text: "SELECT list_filter([{'a': 1}, {'a': 2}], lambda r: r.a::VARCHAR = '2' AND r.a > n) = [{'a': 2}] FROM t", want: true},
		{text: "SELECT ('{\"a\": 5}'::JSON -> '$.a')::INTEGER = 5 FROM t", want: true},
	} {
		for range 2 { // the second time it may be remembered
			table, err := ask(t, e, query.text, query.args...)
			if err != nil || len(table.Rows) != 1 || table.Rows[0][0] != query.want {
				t.Errorf("%s: %v, %v", query.text, table.Rows, err)
			}
		}
	}
}

func TestSelectRefusesWhatCannotBePlanned(t *testing.T) {
	t.Parallel()
	e := texts(t)
	chained := func(each string) string {
		query := "WITH t0 AS (SELECT n FROM t)"
		for i := range 22 {
			query += fmt.Sprintf(", t%d AS (%s)", i+1, strings.ReplaceAll(each, "#", fmt.Sprint("t", i)))
		}
		return query + " SELECT count(*) FROM t22"
	}
	for _, query := range []string{
		chained("SELECT a.n FROM # a, # b"),
		chained("SELECT a.n FROM # a JOIN # b USING (n)"),
		chained("SELECT n FROM # WHERE n IN (SELECT n FROM #)"),
		chained("SELECT (SELECT max(n) FROM #) AS n FROM #"),
		chained("SELECT n FROM # UNION ALL SELECT n FROM #"),
		strings.Repeat("SELECT *, * FROM (", 22) + "SELECT n FROM t" + strings.Repeat(")", 22),
		strings.Repeat("SELECT COLUMNS(*), COLUMNS(*) FROM (", 22) + "SELECT n FROM t" + strings.Repeat(")", 22),
		"SELECT count(*) FROM t" + strings.Repeat(" JOIN t USING (n)", 60),
	} {
		_, err := ask(t, e, query)
		if typed := new(tea.Error); !errors.As(err, &typed) || typed.Type != tea.ValidationError || !strings.Contains(typed.Message, "too large") {
			t.Errorf("%.80s: %v", query, err)
		}
	}
	for _, query := range []string{
		"WITH a AS (SELECT n FROM t), b AS (SELECT * FROM a) SELECT * FROM a JOIN b USING (n) JOIN a AS c USING (n)",
		"SELECT * FROM (SELECT * FROM (SELECT * FROM (SELECT * FROM t)))",
		"SELECT count(*) FROM t" + strings.Repeat(" CROSS JOIN t", 10),
	} {
		if _, err := ask(t, e, query); err != nil && strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestANumberOutOfRangeIsRefusedAtItsPlace(t *testing.T) {
	t.Parallel()
	e := texts(t)
	for query, place := range map[string]string{"SELECT 1e400": "1:8", "SELECT s FROM t WHERE n > -1e400": "1:27", "SELECT 1, [2e309]": "1:12"} {
		_, err := ask(t, e, query)
		if typed := new(tea.Error); !errors.As(err, &typed) || typed.Type != tea.ValidationError || !strings.Contains(typed.Message, place+": the number is out of range") {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, query := range []string{"SELECT 1e308, 1e-400, NULL, 'Infinity', '1e400', 'a: Infinity'", "SELECT 'inf'::DOUBLE"} {
		if _, err := ask(t, e, query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}
