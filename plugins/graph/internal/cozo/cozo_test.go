//go:build cozo && cgo

package cozo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/cozo"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main(m, cozo.Open, func(m *testing.M) { goleak.VerifyTestMain(m) })
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, cozo.Open)
}

func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	storetest.Kills(t, cozo.Open)
}

func open(t testing.TB, dir string) *cozo.DB {
	t.Helper()
	s, err := cozo.Open(t.Context(), store.Options{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*cozo.DB)
}

// lamps opens a graph with a few entities.
func lamps(t *testing.T) *cozo.DB {
	t.Helper()
	db := open(t, t.TempDir())
	entity := func(id, kind, properties string) store.Entity {
		return store.Entity{ID: id, Type: kind, Properties: []byte(properties), CreatedAt: 1, UpdatedAt: 1}
	}
	relation := func(from, kind, to string) store.Relation {
		return store.Relation{RelationKey: store.RelationKey{From: from, Type: kind, To: to, ValidFrom: store.Always}, ValidTo: store.Forever, Properties: []byte("{}"), Weight: 1}
	}
	err := db.Apply(t.Context(), "default", store.Batch{
		Entities:  []store.Entity{entity("lamp", "light", `{"watts":40}`), entity("fuse", "fuse", `{}`), entity("main", "line", `{}`)},
		Relations: []store.Relation{relation("main", "feeds", "fuse"), relation("fuse", "feeds", "lamp")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func query(ctx context.Context, db *cozo.DB, text string, params map[string]any) (*store.Table, error) {
	return db.Query(ctx, store.Query{Text: text, Params: params, ReadOnly: true, MaxRows: 100})
}

func TestQuery(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	for name, test := range map[string]struct {
		text   string
		params map[string]any
		want   store.Table
	}{
		"columns of an entity": {
			text: `?[id, type, watts] := *entity{id, type, properties}, watts = properties->'watts', !is_null(watts)`,
			want: store.Table{Columns: []string{"id", "type", "watts"}, Rows: [][]any{{"lamp", "light", int64(40)}}},
		},
		"recursion": {
			text:   `fed[to] := *relation{from_id: $start, to_id: to}  fed[to] := fed[from], *relation{from_id: from, to_id: to}  ?[to] := fed[to]`,
			params: map[string]any{"start": "main"},
			want:   store.Table{Columns: []string{"to"}, Rows: [][]any{{"fuse"}, {"lamp"}}},
		},
		"a parameter is not a part of the query": {
			text:   `?[x] := x = $x`,
			params: map[string]any{"x": `' :rm entity {id}`},
			want:   store.Table{Columns: []string{"x"}, Rows: [][]any{{`' :rm entity {id}`}}},
		},
		"kinds of values": {
			text:   `?[a, b, c, d, e] := a = $i, b = $f, c = $l, d = $o, e = $n`,
			params: map[string]any{"i": int64(1) << 62, "f": 2.0, "l": []any{int64(1), "x"}, "o": map[string]any{"k": true}, "n": nil},
			want: store.Table{
				Columns: []string{"a", "b", "c", "d", "e"},
				Rows:    [][]any{{int64(1) << 62, 2.0, []any{int64(1), "x"}, map[string]any{"k": true}, nil}},
			},
		},
		"several queries with a temporary relation": {
			text: `{?[id] := *entity{id, type: 'light'} :create _lights {id}} {?[count(id)] := *_lights{id}}`,
			want: store.Table{Columns: []string{"count(id)"}, Rows: [][]any{{int64(1)}}},
		},
		"bytes and vectors": {
			text: `?[a, b] := a = decode_base64('aGVsbG8='), b = vec([0.5, 2.0])`,
			want: store.Table{Columns: []string{"a", "b"}, Rows: [][]any{{"aGVsbG8=", []any{0.5, 2.0}}}},
		},
		"rows over the limit": {
			text: `?[x] := x in int_range(1000)`,
			want: store.Table{Columns: []string{"x"}, Truncated: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := query(t.Context(), db, test.text, test.params)
			if err != nil {
				t.Fatal(err)
			}
			if test.want.Truncated {
				if len(got.Rows) != 100 {
					t.Errorf("%d rows", len(got.Rows))
				}
				got.Rows = nil
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// attacks are queries that must fail, with the type of the error, "" = a limit
// of time or memory. None changes the database, reads a file or ends the process.
var attacks = map[string]struct {
	text string
	want tea.ErrorType
}{
	"put":                     {`?[namespace, id] <- [['default', 'lamp']] :rm entity {namespace, id}`, tea.PermissionDenied},
	"create":                  {`?[a] <- [[1]] :create stolen {a}`, tea.PermissionDenied},
	"replace":                 {`?[a] <- [[1]] :replace entity {a}`, tea.PermissionDenied},
	"put in a block":          {`{?[a] <- [[1]] :create stolen {a}}`, tea.PermissionDenied},
	"put after errors":        {`%ignore_error {?[a] <- [[1]] :create stolen {a}} {?[a] <- [[1]]}`, tea.PermissionDenied},
	"put in a condition":      {`%if {?[a] <- [[1]] :create stolen {a}} %then {?[a] <- [[1]]} %end`, tea.PermissionDenied},
	"put in a return":         {`%return {?[a] <- [[1]] :create stolen {a}}`, tea.PermissionDenied},
	"drop relations":          {`::remove entity`, tea.PermissionDenied},
	"list relations":          {`::relations`, tea.PermissionDenied},
	"kill queries":            {`::kill 1`, tea.PermissionDenied},
	"running queries":         {`::running`, tea.PermissionDenied},
	"trigger":                 {`::set_triggers entity on put {?[a] <- [[1]] :create stolen {a}}`, tea.PermissionDenied},
	"access level":            {`::access_level normal entity`, tea.PermissionDenied},
	"compact":                 {`::compact`, tea.PermissionDenied},
	"stored query":            {`::query create stolen {?[a] <- [[1]]}`, tea.PermissionDenied},
	"system operator inside":  {`{::remove entity}`, tea.PermissionDenied},
	"comment before operator": {"/* ? */ # x\n ::remove entity", tea.PermissionDenied},
	"explain":                 {`::explain {?[a] <- [[1]]}`, tea.PermissionDenied},
	"print":                   {`{?[a] <- [[1]] :create _t {a}} %debug _t`, tea.PermissionDenied},
	"sleep":                   {`?[a] <- [[1]] :sleep 1000000`, tea.PermissionDenied},
	"sleep in a block":        {`{?[a] <- [[1]] :sleep 1000000}`, tea.PermissionDenied},
	"read a CSV file":         {`?[a] <~ CsvReader(types: ['String'], url: 'file:///etc/passwd')`, tea.QueryError},
	"read a JSON file":        {`?[a] <~ JsonReader(fields: ['a'], url: 'file:///etc/passwd')`, tea.QueryError},
	"read from the network":   {`?[a] <~ CsvReader(types: ['String'], url: 'http://127.0.0.1:1/')`, tea.QueryError},
	"read RDF":                {`?[a] <~ RdfReader(url: 'file:///etc/passwd')`, tea.QueryError},
	"import":                  {`::import 'x'`, tea.QueryError},
	"syntax error":            {`?[a] := `, tea.QueryError},
	"unknown relation":        {`?[a] := *nothing{a}`, tea.QueryError},
	"empty":                   {``, tea.QueryError},
	"a huge list":             {`?[a] := a in int_range(1, 10000000000)`, tea.ResourceExhausted},
	"a huge constant":         {`?[a] <- [[length(int_range(1, 10000000000))]]`, tea.ResourceExhausted},
	"a huge vector":           {`?[a] := a = length(rand_vec(100000000000))`, tea.ResourceExhausted},
	"a list that grows":       {`?[a] := a = length(int_range(1, 9000000000, 1))`, tea.ResourceExhausted},
	"texts that double":       {`a[x] := x = 'x'  a[y] := a[x], y = concat(x, x)  ?[n] := a[x], n = length(x)`, ""},
	"endless recursion":       {`a[x] := x = 0  a[y] := a[x], y = x + 1  ?[count(x)] := a[x]`, ""},
	"endless loop":            {`%loop {?[a] <- [[1]]} %end`, tea.Timeout},
	"a large product": {
		`n[x] := x in int_range(2000)  ?[count(a)] := n[a], n[b], n[c], n[d], a + b + c + d > 100000`, tea.Timeout,
	},
	"many brackets":        {`?[a] := a = ` + strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 10_000), tea.QueryError},
	"many open brackets":   {strings.Repeat("(", 60_000), tea.QueryError},
	"many lists":           {`?[a] <- ` + strings.Repeat("[", 190), tea.QueryError},
	"nested groups":        {`?[a] := ` + strings.Repeat("(", 190) + "a = 1" + strings.Repeat(")", 190) + "x", tea.QueryError},
	"many negations":       {`?[a] := a = ` + strings.Repeat("!", 60_000) + "true x", tea.QueryError},
	"many minus signs":     {`?[a] := a = ` + strings.Repeat("-", 60_000) + "1 x", tea.QueryError},
	"many nots":            {`?[a] := a = 1, ` + strings.Repeat("not ", 15_999) + "b = 2", tea.QueryError},
	"nested comments":      {strings.Repeat("/*", 32_000), tea.QueryError},
	"a long query":         {`?[a] := a = '` + strings.Repeat("x", 1<<20) + "'", tea.QueryError},
	"a regular expression": {`?[a] := a = regex_matches('aaaa', '(((((a{1000}){1000}){1000}){1000}))')`, tea.QueryError},
}

func TestAttacksOnQueries(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if attack.want == tea.Timeout || attack.want == "" {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			table, err := query(ctx, db, attack.text, nil)
			if err == nil {
				t.Fatalf("it returned %v", table)
			}
			kind := tea.AsError(err).Type
			if errors.Is(err, context.DeadlineExceeded) {
				kind = tea.Timeout
			}
			t.Logf("%s: %.200v", kind, err)
			if attack.want != "" && kind != attack.want || attack.want == "" && kind != tea.Timeout && kind != tea.ResourceExhausted {
				t.Errorf("%s: %.300v", kind, err)
			}
		})
	}
	t.Cleanup(func() {
		found, err := db.Entities(context.Background(), "default", []string{"fuse", "lamp", "main"}, store.Fields{})
		if err != nil || len(found) != 3 {
			t.Errorf("after the attacks there are %v (%v)", found, err)
		}
	})
}

// A canceled query stops at once, and its engine serves others.
func TestCanceledQueryStops(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	for range 8 {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() {
			_, err := query(ctx, db, `n[x] := x in int_range(3000)  ?[count(a)] := n[a], n[b], n[c], n[d], a + b + c + d > 100000`, nil)
			stopped <- err
		}()
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if _, err := query(t.Context(), db, `?[id] := *entity{id}`, nil); err != nil {
		t.Fatal(err)
	}
}

// A query that runs does not delay writes.
func TestQueryDoesNotBlockWrites(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		_, err := query(ctx, db, `?[count(a)] := *entity{id}, a in int_range(3000), b in int_range(3000), c in int_range(3000), a + b + c > 100000`, nil)
		stopped <- err
	}()
	for i := range 20 {
		err := db.Apply(t.Context(), "default", store.Batch{Entities: []store.Entity{{ID: fmt.Sprint(i), Type: "t", Properties: []byte("{}")}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-stopped:
		t.Fatalf("the query has ended: %v", err)
	default:
	}
	cancel()
	<-stopped
}

func TestWritingQuery(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	write := func(text string) {
		t.Helper()
		if _, err := db.Query(t.Context(), store.Query{Text: text, MaxRows: 10}); err != nil {
			t.Fatal(err)
		}
	}
	write(`?[a, b] <- [[1, 'x'], [2, 'y']] :create mine {a => b}`)
	write(`?[a, b] <- [[3, 'z']] :put mine {a => b}`)
	write(`?[a] <- [[1]] :rm mine {a}`)
	got, err := query(t.Context(), db, `?[a, b] := *mine{a, b}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]any{{int64(2), "y"}, {int64(3), "z"}}, got.Rows); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{
		`::remove entity`, `?[namespace, id] <- [['default', 'lamp']] :rm entity {namespace, id}`, `?[a] <- [[1]] :replace entity {a}`, `?[name, value] <- [['x', 1]] :put meta {name => value}`,
		`{?[a] <- [[1]] :put mine {a}} {?[namespace, word, id] := *word{namespace, word, id} :delete word {namespace, word, id}}`, `?[namespace] <- [['x']] :insert namespace {namespace}`,
		`?[namespace, from_id, rel_type, to_id, valid_from, weight] := *relation{namespace, from_id, rel_type, to_id, valid_from}, weight = 2.0 :update relation {namespace, from_id, rel_type, to_id, valid_from => weight}`,
		`%if {?[a] <- [[1]]} %then {?[namespace, id] <- [['default', 'lamp']] :rm entity {namespace, id}} %end`,
	} {
		if _, err := db.Query(t.Context(), store.Query{Text: text, MaxRows: 1}); tea.AsError(err).Type != tea.PermissionDenied {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Queries for another CozoDB have entity and relation as rules, or list all columns.
func TestErrorsNameTheRelationsOfTheGraph(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	for _, text := range []string{
		"?[id] := entity[id, type]", "?[id] := entity{id}", "?[id] := *entity[id, type, properties, embedding, created_at]", "?[id] := *Entity{id}", "?[id] := *entity{id, kind}",
		"?[to] := *relation[from, to, type, properties, created_at]", "?[to] := relation{from_id: 'main', to_id: to}",
		"?[id, d] := ~entity:embedding{id | query: vec([1, 2]), k: 3, ef: 10, bind_distance: d}",
	} {
		if _, err := query(t.Context(), db, text, nil); err == nil || tea.AsError(err).Type != tea.QueryError || !strings.Contains(err.Error(), "*entity{") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestHintsDoNotNameRefusedOperators(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	for _, text := range []string{"::relatons", "# all\n::index crate entity:x {id}", "foo", "?[id] := *entity{id} :limt 3", "{?[a] <- [[1]]} {::relatons}", "?[a] <- [[1]] :prt x {a}"} {
		_, err := query(t.Context(), db, text, nil)
		e := tea.AsError(err)
		if err == nil || e.Type != tea.QueryError {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, refused := range []string{"::", ":sleep", "%debug", "reindex", "`create`"} {
			if strings.Contains(e.Message, refused) {
				t.Errorf("%s: the error names %s: %s", text, refused, e.Message)
			}
		}
	}
}

// Integers wrapped silently: the sum of two positive ones was negative.
func TestIntegersBeyond64BitsAreErrors(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	for _, text := range []string{
		"?[x] := x = 9223372036854775807 + 1", "?[x] := x = 9223372036854775807 * 2", "?[x] := x = -9223372036854775807 - 3", "?[x] := x = $max + $max", "?[x] := *entity{created_at}, x = created_at + $max",
		"?[x] := x = $min % -1", "?[x] := x = -$min", "?[x] := x = abs($min)",
	} {
		p := map[string]any{}
		for name, n := range map[string]int64{"max": math.MaxInt64, "min": math.MinInt64} {
			if strings.Contains(text, "$"+name) {
				p[name] = n
			}
		}
		if r, err := query(t.Context(), db, text, p); err == nil || tea.AsError(err).Type != tea.QueryError || !strings.Contains(err.Error(), "beyond 64 bits") {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	same := func(text string, want any) {
		t.Helper()
		r, err := query(t.Context(), db, text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff([][]any{{want}}, r.Rows); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	same("?[x] := x = 9223372036854775806 + 1", int64(math.MaxInt64))
	same("?[x] := x = to_int(1e30)", int64(math.MaxInt64))
	same("?[sum(x)] := x in [9223372036854775807, 1]", float64(1<<63))
	same("?[x] := x = to_float(9223372036854775807) + 1", float64(1<<63))
	write := func(text string) error {
		_, err := db.Query(t.Context(), store.Query{Text: text, MaxRows: 10})
		return err
	}
	if err := write("?[a] <- [[1]] :create own {a}"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // and the relation can be written afterwards
		if err := write("?[a] := *own{a: b}, a = b + 9223372036854775807 :put own {a}"); err == nil || tea.AsError(err).Type != tea.QueryError {
			t.Errorf("%v", err)
		}
		if err := write("?[a] <- [[2]] :put own {a}"); err != nil {
			t.Error(err)
		}
	}
	same("?[count(a)] := *own{a}", int64(2))
}

// The error of :insert named the relation only, and not why.
func TestAFailedWriteSaysWhy(t *testing.T) {
	t.Parallel()
	db := lamps(t)
	if _, err := db.Query(t.Context(), store.Query{Text: "?[a] <- [[1]] :create own {a: Int}", MaxRows: 10}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"?[a] <- [[1]] :put own {a}\n?[a] <- [[1]] :insert own {a}":    "",
		"{?[a] <- [[1]] :put own {a}} {?[a] <- [[1]] :insert own {a}}": "exist",
		"?[a] <- [[9]] :delete own {a}":                                "not exist",
		"?[a] <- [[9]] :update own {a}":                                "not exist",
		"?[a] <- [[9]] :ensure own {a}":                                "not exist",
		"?[a] <- [['x']] :put own {a}":                                 "Int",
	} {
		_, err := db.Query(t.Context(), store.Query{Text: text, MaxRows: 10})
		if err == nil || tea.AsError(err).Type != tea.QueryError || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestErrorSaysWhere(t *testing.T) {
	t.Parallel()
	_, err := query(t.Context(), lamps(t), "?[a] :=\n  a = foo(1)", nil)
	e := tea.AsError(err)
	if e.Type != tea.QueryError || e.Details["line"] != int64(2) {
		t.Errorf("%v %v", err, e.Details)
	}
}

// Damage that SQLite does not see was a changed result. Reading, and processes that do
// not write, leave the checksum as it is.
func TestAChangedByteOfAClosedDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "graph.cozo")
	reopened := func() store.Store {
		t.Helper()
		s, err := cozo.Open(t.Context(), store.Options{Dir: dir, Create: len(read(t, dir)) == 0})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	closed := func(s store.Store) map[string]string {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return read(t, dir)
	}
	s := reopened()
	e := store.Entity{ID: "lamp", Type: "light", Properties: []byte(`{"place":"the third floor"}`), CreatedAt: 1, UpdatedAt: 1}
	if err := s.Apply(t.Context(), "default", store.Batch{Entities: []store.Entity{e}}); err != nil {
		t.Fatal(err)
	}
	if _, sealed := read(t, dir)["graph.cozo.seal"]; sealed {
		t.Error("an open database with changes has a checksum")
	}
	want := closed(s)
	s = reopened()
	if _, err := s.Stats(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if _, err := query(t.Context(), s.(*cozo.DB), "?[id] := *entity{id}", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, closed(s)); diff != "" {
		t.Errorf("reading changed the files: %.300s", diff)
	}
	s = reopened()
	if _, err := s.(*cozo.DB).Query(t.Context(), store.Query{Text: "?[a] <- [[1]] :create own {a}", MaxRows: 1}); err != nil {
		t.Fatal(err)
	}
	closed(s)
	closed(reopened()) // the checksum belongs to the changed file

	text := []byte(read(t, dir)["graph.cozo"])
	text[bytes.Index(text, []byte("third floor"))] = 'b'
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := cozo.Open(t.Context(), store.Options{Dir: dir})
	if err == nil {
		closed(s)
	}
	if e := tea.AsError(err); err == nil || e.Type != tea.InternalError || !strings.Contains(e.Message, file) || !strings.Contains(e.Message, "restore a backup") {
		t.Errorf("opened with %v", err)
	}
}

// read returns the files of a folder that are not empty.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 0 {
			files[e.Name()] = string(text)
		}
	}
	return files
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(file string, header []byte) []byte
		want  string
	}{
		"text":            {func(string, []byte) []byte { return []byte(strings.Repeat("not a database\n", 100)) }, "not a database"},
		"another program": {func(_ string, b []byte) []byte { b[68] ^= 1; return b }, "database of another program"},
		"a newer format":  {func(_ string, b []byte) []byte { b[63] = 9; return b }, "has format 9"},
		"a cut file":      {func(_ string, b []byte) []byte { return b[:5000] }, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, err := cozo.Open(t.Context(), store.Options{Dir: dir, Create: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "graph.cozo")
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before = test.spoil(file, before)
			if err := os.WriteFile(file, before, 0o600); err != nil {
				t.Fatal(err)
			}
			if s, err = cozo.Open(t.Context(), store.Options{Dir: dir}); err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
			after, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}
