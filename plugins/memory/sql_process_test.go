package memory_test

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

const (
	// longList is a table of one row whose column l is a long list.
	longList = "(SELECT list(range) AS l FROM range(300000))"
	hostile  = "%a%a%a%a%a%a%a%a%a%a%b%c"
)

// unstoppable are queries that take long in one call of a function, during which
// DuckDB does not look at a limit. t has one row: s is a long text, p is hostile.
var unstoppable = []struct {
	query string
	args  []any
}{
	{"SELECT s LIKE p FROM t", nil},
	{"SELECT s NOT LIKE p FROM t", nil},
	{"SELECT s LIKE p || '%' FROM t", nil},
	{"SELECT s LIKE (SELECT max(p) FROM t) FROM t", nil},
	{"SELECT '" + hostile + "' AS q, s LIKE q FROM t", nil},
	{"SELECT s LIKE '" + hostile + "_' FROM t", nil},
	{"SELECT s LIKE ? FROM t", []any{hostile + "_"}},
	{"SELECT s LIKE '%' || $x FROM t WHERE p LIKE $x", []any{}},
	{"SELECT s LIKE '" + hostile + "' ESCAPE '!' FROM t", nil},
	{"SELECT s LIKE '%a%b' ESCAPE p FROM t", nil},
	{"SELECT like_escape(s, '" + hostile + "', '') FROM t", nil},
	{"SELECT s ILIKE '" + hostile + "' FROM t", nil},
	{"SELECT s ILIKE '%a%b%' FROM t", nil},
	{"SELECT s NOT ILIKE p FROM t", nil},
	{"SELECT n FROM t WHERE s ILIKE ?", []any{hostile}},
	{"SELECT s ILIKE '%a%' || lower(?) FROM t", []any{"%b"}},
	{"SELECT s GLOB '*a*a*a*a*a*a*b' FROM t", nil},
	{"SELECT list_filter([s], lambda x: x ILIKE p) FROM t", nil},
	{"SELECT levenshtein(s, reverse(s)) FROM t", nil},
	{"SELECT damerau_levenshtein(s, 'a') FROM t", nil},
	{"SELECT editdist3(left(s, 100), s) FROM t", nil},
	{"SELECT jaro_winkler_similarity(left(s, 100000), s) FROM t", nil},
	{"SELECT levenshtein(left(s, n), left(s, -1)) FROM t", nil},
	{"SELECT levenshtein(substr(s, 10), 'a') FROM t", nil},
	{"SELECT regexp_extract_all(s, 'a(.*b)?') FROM t", nil},
	{"SELECT regexp_replace(s, 'a|a.*b', '', 'g') FROM t", nil},
	{"SELECT regexp_replace(s, p, '', 'g') FROM t", nil},
	{"SELECT regexp_replace(s, ?, '', 'gi') FROM t", []any{"a(b+c)*"}},
	{"SELECT regexp_replace(s, 'a(.*b)?', '', p) FROM t", nil},
	{"SELECT string_split_regex(s, '(?:a.{3,}b){0,1}') FROM t", nil},
	{"SELECT list_intersect(l, l) FROM " + longList, nil},
	{"SELECT json_merge_patch(s, s) FROM t", nil},
	{"SELECT list_transform(l, lambda x: list_position(l, -1)) FROM " + longList, nil},
	{"SELECT list_transform(l, lambda x, i: list_position(o.l, i)) FROM " + longList + " o", nil},
	{"SELECT list_transform(x.l, lambda x: list_position(x.l, -1)) FROM " + longList + " x", nil},
	{"SELECT list_filter(l, x -> list_contains(l, -x - 1)) FROM " + longList, nil},
	{"SELECT [x FOR x IN l IF -x - 1 IN l] FROM " + longList, nil},
	{"SELECT [x FOR x IN l IF length(l[1:x]) = x] FROM " + longList, nil},
	{"SELECT list_transform(l, lambda x: l::VARCHAR) FROM " + longList, nil},
	{"SELECT list_transform([l], lambda a: list_transform(a, lambda x: list_position(a, -x))) FROM " + longList, nil},
	{"SELECT list_filter(l, lambda x: 1 + length(coalesce(string_split(s, 'b'), [])) > x) FROM t, " + longList, nil},
	{"SELECT apply(l, lambda x: list_sum(list_transform(l, lambda y: y))) FROM " + longList, nil},
	{"SELECT list_transform(l, lambda x: s -> '$.a') FROM t, " + longList, nil},
	{"SELECT list_transform(l, lambda x: s ->> '$.a') FROM t, " + longList, nil},
	{"SELECT list_transform(l, lambda x: x IN (s, p)) FROM t, " + longList, nil},
	{"SELECT l.list_transform(lambda x: l.list_position(-1)) FROM " + longList, nil},
}

// replaced runs a plugin process on one folder and starts it again when it has
// ended, as a host does.
type replaced struct {
	binary, dir string
	process     *teatest.Process
	instance    teatest.Instance
}

func (r *replaced) start(t *testing.T) {
	t.Helper()
	process, err := teatest.Start(t.Context(), exec.CommandContext(context.WithoutCancel(t.Context()), r.binary), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Close)
	r.process = process
	settings := tea.Settings{"memory": []byte(`{"engine": "duckdb", "memory_mb": 64, "path": "` + r.dir + `"}`)}
	if r.instance, err = process.Open(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
}

func (r *replaced) invoke(t *testing.T, action string, params map[string]any) (*tea.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return r.instance.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(params), Host: &teatest.Host{}})
}

// awaitEnd asks the process for its manifest until it is gone.
func (r *replaced) awaitEnd(t *testing.T, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := r.process.Describe(ctx); err != nil && ctx.Err() == nil {
			return
		}
	}
	t.Fatalf("%s: the process goes on", query)
}

// A query that DuckDB cannot stop fails with a typed error, and the process
// ends soon after. The next one has everything that was acknowledged.
func TestQueryThatCannotBeStoppedEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits of DuckDB")
	if !duckdb.Available {
		t.Skip("this build has no DuckDB")
	}
	binary := filepath.Join(t.TempDir(), "tea-plugin-memory")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/tea-plugin-memory").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	const processes = 4 // most of the time they wait for time limits
	var stopped atomic.Int64
	t.Cleanup(func() {
		if stopped.Load() == 0 && !t.Failed() {
			t.Error("no query was beyond DuckDB")
		}
	})
	for part := range processes {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			t.Parallel()
			r := &replaced{binary: binary, dir: t.TempDir()}
			r.start(t)
			columns := map[string]any{"s": "text", "p": "text", "n": "int"}
			if _, err := r.invoke(t, "data.create_table", map[string]any{"name": "t", "schema": columns}); err != nil {
				t.Fatal(err)
			}
			row := map[string]any{"s": strings.Repeat("a", 200_000), "p": hostile, "n": 1}
			if _, err := r.invoke(t, "data.insert", map[string]any{"table": "t", "rows": []any{row}}); err != nil {
				t.Fatal(err)
			}
			for i := part; i < len(unstoppable); i += processes {
				if r.ends(t, i) {
					stopped.Add(1)
				}
			}
		})
	}
}

// ends runs a query and reports whether it ended the process.
func (r *replaced) ends(t *testing.T, i int) bool {
	t.Helper()
	test := unstoppable[i]
	if _, err := r.invoke(t, "ltm.store", map[string]any{"key": "last", "value": i}); err != nil {
		t.Fatal(err)
	}
	_, err := r.invoke(t, "data.query", map[string]any{"sql": test.query, "args": test.args, "timeout_seconds": 0.2})
	typed := new(tea.Error)
	switch {
	case err == nil:
		t.Logf("%s: answered in time", test.query)
		return false
	case !errors.As(err, &typed) || typed.Type == tea.PluginCrashed || typed.Type == tea.InternalError:
		t.Errorf("%s: %v", test.query, err)
	case !strings.Contains(typed.Message, "did not stop"):
		return false
	}
	r.awaitEnd(t, test.query)
	r.start(t)
	answer, err := r.invoke(t, "ltm.retrieve", map[string]any{"key": "last"})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Value int }
	if err := answer.Result.Decode(&got); err != nil || got.Value != i {
		t.Errorf("%s: the last write is %d, %v; want %d", test.query, got.Value, err, i)
	}
	return true
}
