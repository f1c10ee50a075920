//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// texts gives a database with a table t of one row: s is a long text, p a
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

func TestSelectRefusesWhatNoTimeoutEnds(t *testing.T) {
	t.Parallel()
	e := texts(t)
	for _, query := range []struct {
		text string
		args []any
	}{
		{text: "SELECT s LIKE p FROM t"},
		{text: "SELECT s NOT LIKE p FROM t"},
		{text: "SELECT s LIKE p || '%' FROM t"},
		{text: "SELECT s LIKE (SELECT max(p) FROM t) FROM t"},
		{text: "SELECT '" + hostile + "' AS q, s LIKE q FROM t"},
		{text: "SELECT s LIKE '" + hostile + "_' FROM t"},
		{text: "SELECT s LIKE ? FROM t", args: []any{hostile + "_"}},
		{text: "SELECT s LIKE '%' || $x FROM t WHERE p LIKE $x", args: []any{}},
		{text: "SELECT s LIKE '" + hostile + "' ESCAPE '!' FROM t"},
		{text: "SELECT s LIKE '%a%b' ESCAPE p FROM t"},
		{text: "SELECT like_escape(s, '" + hostile + "', '') FROM t"},
		{text: "SELECT s ILIKE '" + hostile + "' FROM t"},
		{text: "SELECT s ILIKE '%a%b%' FROM t"},
		{text: "SELECT s NOT ILIKE p FROM t"},
		{text: "SELECT n FROM t WHERE s ILIKE ?", args: []any{hostile}},
		{text: "SELECT s ILIKE '%a%' || lower(?) FROM t", args: []any{"%b"}},
		{text: "SELECT s GLOB '*a*a*a*a*a*a*b' FROM t"},
		{text: "SELECT list_filter([s], lambda x: x ILIKE p) FROM t"},
		{text: "SELECT levenshtein(s, reverse(s)) FROM t"},
		{text: "SELECT damerau_levenshtein(s, 'a') FROM t"},
		{text: "SELECT editdist3(left(s, 100), s) FROM t"},
		{text: "SELECT jaro_winkler_similarity(left(s, 100000), s) FROM t"},
		{text: "SELECT levenshtein(left(s, n), left(s, -1)) FROM t"},
		{text: "SELECT levenshtein(substr(s, 10), 'a') FROM t"},
		{text: "SELECT regexp_extract_all(s, 'a(.*b)?') FROM t"},
		{text: "SELECT regexp_replace(s, 'a|a.*b', '', 'g') FROM t"},
		{text: "SELECT regexp_replace(s, p, '', 'g') FROM t"},
		{text: "SELECT regexp_replace(s, ?, '', 'gi') FROM t", args: []any{"a(b+c)*"}},
		{text: "SELECT regexp_replace(s, 'a(.*b)?', '', p) FROM t"},
		{text: "SELECT string_split_regex(s, '(?:a.{3,}b){0,1}') FROM t"},
		{text: "SELECT list_intersect(l, l) FROM " + long},
		{text: "SELECT json_merge_patch(s, s) FROM t"},
		{text: "SELECT list_transform(l, lambda x: list_position(l, -1)) FROM " + long},
		{text: "SELECT list_transform(l, lambda x, i: list_position(o.l, i)) FROM " + long + " o"},
		{text: "SELECT list_transform(x.l, lambda x: list_position(x.l, -1)) FROM " + long + " x"},
		{text: "SELECT list_filter(l, x -> list_contains(l, -x - 1)) FROM " + long},
		{text: "SELECT [x FOR x IN l IF -x - 1 IN l] FROM " + long},
		{text: "SELECT [x FOR x IN l IF length(l[1:x]) = x] FROM " + long},
		{text: "SELECT list_transform(l, lambda x: l::VARCHAR) FROM " + long},
		{text: "SELECT list_transform([l], lambda a: list_transform(a, lambda x: list_position(a, -x))) FROM " + long},
		{text: "SELECT list_filter(l, lambda x: 1 + length(coalesce(string_split(s, 'b'), [])) > x) FROM t, " + long},
		{text: "SELECT apply(l, lambda x: list_sum(list_transform(l, lambda y: y))) FROM " + long},
		{text: "SELECT list_transform(l, lambda x: s -> '$.a') FROM t, " + long},
		{text: "SELECT list_transform(l, lambda x: s ->> '$.a') FROM t, " + long},
		{text: "SELECT list_transform(l, lambda x: x IN (s, p)) FROM t, " + long},
		{text: "SELECT l.list_transform(lambda x: l.list_position(-1)) FROM " + long},
	} {
		table, err := ask(t, e, query.text, query.args...)
		if typed := new(tea.Error); !errors.As(err, &typed) || typed.Type != tea.ValidationError {
			t.Errorf("%s: %v, %v", query.text, table.Rows, err)
		}
	}
}

func TestSelectComparesWithPatternsWhoseTimeIsKnown(t *testing.T) {
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

func TestAQueryIsCheckedForEachPatternThatItIsGiven(t *testing.T) {
	t.Parallel()
	e := texts(t)
	const query = "SELECT n FROM t WHERE s ILIKE ?"
	if _, err := ask(t, e, query, "%a%"); err != nil {
		t.Fatal(err)
	}
	if table, err := ask(t, e, query, hostile); err == nil {
		t.Errorf("the second pattern was let through: %v", table.Rows)
	}
}
