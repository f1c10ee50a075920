package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// MetadataStore runs the suite of [store.MetadataStore]. The first call of open
// in a test returns an empty store; each later call reopens the same data.
func MetadataStore(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	t.Helper()
	run(t, func(*testing.T) func(t *testing.T) store.MetadataStore { return open }, map[string]func(t *testing.T, open func(t *testing.T) store.MetadataStore){
		"versions":     metadataVersions,
		"all or none":  metadataAllOrNone,
		"one batch":    metadataBatch,
		"conditions":   metadataConditions,
		"orders":       metadataOrders,
		"pages":        metadataPages,
		"refusals":     metadataRefusals,
		"reopen":       metadataReopen,
		"concurrent":   metadataConcurrent,
		"many changes": metadataMany,
		"cursors":      metadataCursors,
		"first wins":   metadataFirstWins,
		"readers":      metadataReaders,
		"canceled":     metadataCanceled,
	})
}

func put(kind, id, body string) store.Change {
	return store.Change{Kind: kind, ID: id, Body: json.RawMessage(body)}
}

func apply(t *testing.T, s store.MetadataStore, changes ...store.Change) {
	t.Helper()
	if err := s.Apply(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
}

// bodyOf returns the body of a document, "" for none.
func bodyOf(t *testing.T, s store.MetadataStore, kind, id string) string {
	t.Helper()
	d, err := s.Get(t.Context(), kind, id)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(d.Body)
}

func idsOf(t *testing.T, s store.MetadataStore, q store.DocumentQuery) []string {
	t.Helper()
	found, err := s.Query(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	ids := []string{}
	for _, d := range found {
		ids = append(ids, d.ID)
	}
	return ids
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func metadataVersions(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	_, err := s.Get(t.Context(), "k", "a")
	want(t, "a missing document is not found", errors.Is(err, store.ErrNotFound), true)
	apply(t, s, put("k", "a", `{"n": 1}`))
	first := must(s.Get(t.Context(), "k", "a"))(t)
	want(t, "version", first.Version, 1)
	apply(t, s, put("k", "b", `{}`), put("other", "a", `{}`))
	for name, c := range map[string]store.Change{
		"new, but there":       {Kind: "k", ID: "a", Body: json.RawMessage(`{}`), If: store.New},
		"a later version":      {Kind: "k", ID: "a", Body: json.RawMessage(`{}`), If: 2},
		"there, but missing":   {Kind: "k", ID: "none", Body: json.RawMessage(`{}`), If: 1},
		"remove, but changed":  {Kind: "k", ID: "a", If: 7},
		"remove, but not new":  {Kind: "k", ID: "a", If: store.New},
		"remove, but missing":  {Kind: "k", ID: "none", If: 1},
		"of the other's kinds": {Kind: "third", ID: "a", If: 1},
	} {
		if err := s.Apply(t.Context(), c); !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), c.ID) {
			t.Errorf("%s: %v; want a conflict that names the document", name, err)
		}
	}
	apply(t, s, store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 2}`), If: 1})
	second := must(s.Get(t.Context(), "k", "a"))(t)
	want(t, "version", second.Version, 2)
	if second.Seq <= first.Seq {
		t.Errorf("seq %d after %d", second.Seq, first.Seq)
	}
	apply(t, s, store.Change{Kind: "k", ID: "a", If: 2}, store.Change{Kind: "k", ID: "none"})
	want(t, "removed", bodyOf(t, s, "k", "a"), "")
	apply(t, s, store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 3}`), If: store.New})
	third := must(s.Get(t.Context(), "k", "a"))(t)
	want(t, "version of the new one", third.Version, 1)
	want(t, "the other kind", bodyOf(t, s, "other", "a"), "{}")
}

func metadataAllOrNone(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	apply(t, s, put("k", "a", `{"n": 1}`), put("k", "gone", `{}`))
	err := s.Apply(t.Context(), put("k", "new", `{}`), store.Change{Kind: "k", ID: "gone"}, put("k", "a", `{"n": 2}`), store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{}`), If: 9})
	want(t, "conflict", errors.Is(err, store.ErrConflict), true)
	want(t, "what was to be added", bodyOf(t, s, "k", "new"), "")
	want(t, "what was to be removed", bodyOf(t, s, "k", "gone"), "{}")
	want(t, "what was to be changed", bodyOf(t, s, "k", "a"), `{"n": 1}`)
}

func metadataBatch(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	apply(t, s, put("k", "a", `{"n": 1}`), put("k", "moved", `{"n": 5}`))
	apply(
		t, s,
		store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 2}`), If: 1},
		store.Change{Kind: "k", ID: "a", Body: json.RawMessage(`{"n": 3}`), If: 2},
		put("k", "short", `{}`), store.Change{Kind: "k", ID: "short", If: 1},
		store.Change{Kind: "k", ID: "moved"}, store.Change{Kind: "k", ID: "moved", Body: json.RawMessage(`{"n": 6}`), If: store.New},
	)
	want(t, "the later one wins", bodyOf(t, s, "k", "a"), `{"n": 3}`)
	want(t, "made and removed", bodyOf(t, s, "k", "short"), "")
	want(t, "removed and made", bodyOf(t, s, "k", "moved"), `{"n": 6}`)
	apply(t, s)
}

func metadataConditions(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	apply(
		t, s,
		put("k", "int", `{"v": 5, "in": {"v": true}, "null": 1}`), put("k", "float", `{"v": 5.5}`), put("k", "text", `{"v": "5", "in": {"v": "true"}}`), put("k", "true", `{"v": true}`),
		put("k", "null", `{"v": null}`), put("k", "none", `{}`), put("k", "big", `{"v": 9007199254740993}`), put("k", "list", `{"v": [5]}`),
		put("k", "time", `{"v": "2026-03-01T12:00:00.000000Z"}`), put("k", "ümlaut/é", `{"v": "ünï%_x"}`), put("k", "minus", `{"v": -3}`),
		put("other", "int", `{"v": 5}`),
	)
	for _, test := range []struct {
		field string
		op    store.Op
		value any
		want  string
	}{
		{"v", store.Eq, int64(5), "int"},
		{"v", store.Eq, 5.0, "int"},
		{"v", store.Eq, 5.5, "float"},
		{"v", store.Eq, "5", "text"},
		{"v", store.Eq, true, "true"},
		{"v", store.Eq, false, ""},
		{"v", store.Eq, nil, "none null"},
		{"v", store.Ne, nil, "big float int list minus text time true ümlaut/é"},
		{"v", store.Ne, int64(5), "big float list minus none null text time true ümlaut/é"},
		{"v", store.Eq, int64(9007199254740993), "big"},
		{"v", store.Eq, int64(9007199254740992), ""},
		{"v", store.Gt, int64(5), "big float"},
		{"v", store.Ge, 5.0, "big float int"},
		{"v", store.Lt, int64(0), "minus"},
		{"v", store.Le, 5.5, "float int minus"},
		{"v", store.Ge, "2026-03-01T00:00:00.000000Z", "text time ümlaut/é"},
		{"v", store.Lt, "2026-03-01T12:00:00.000001Z", "time"},
		{"v", store.In, []any{"5", int64(5), nil, true}, "int none null text true"},
		{"v", store.In, []any{}, ""},
		{"v", store.Prefix, "ünï%", "ümlaut/é"},
		{"v", store.Prefix, "ünï_", ""},
		{"v", store.Prefix, "Ün", ""},
		{"v", store.Prefix, "", "text time ümlaut/é"},
		{"in.v", store.Eq, true, "int"},
		{"null", store.Eq, int64(1), "int"},
		{"in.v", store.Eq, "true", "text"},
		{"id", store.Eq, "list", "list"},
		{"id", store.Gt, "true", "ümlaut/é"},
		{"id", store.In, []any{"int", "minus", "nothing"}, "int minus"},
		{"id", store.Prefix, "ümlaut/", "ümlaut/é"},
		{"id", store.Prefix, "t", "text time true"},
	} {
		q := store.DocumentQuery{Kind: "k", OrderBy: "id", Where: []store.Condition{{Field: test.field, Op: test.op, Value: test.value}}}
		got := strings.Join(idsOf(t, s, q), " ")
		want(t, fmt.Sprintf("%s %s %v", test.field, test.op, test.value), got, test.want)
		want(t, fmt.Sprintf("the count of %s %s %v", test.field, test.op, test.value), must(s.Count(t.Context(), q))(t), len(strings.Fields(test.want)))
	}
	both := store.DocumentQuery{Kind: "k", Where: []store.Condition{{Field: "v", Op: store.Ge, Value: int64(5)}, {Field: "v", Op: store.Lt, Value: int64(6)}}, OrderBy: "id"}
	want(t, "both conditions", idsOf(t, s, both), []string{"float", "int"})
}

func metadataOrders(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	apply(t, s, put("k", "c", `{"v": 10}`), put("k", "a", `{"v": 9}`), put("k", "b", `{"v": "10"}`), put("k", "d", `{"v": "9"}`), put("k", "f", `{}`), put("k", "e", `{"v": 9}`))
	for _, test := range []struct {
		by         string
		descending bool
		want       string
	}{
		{"", false, "c a b d f e"},
		{"seq", true, "e f d b a c"},
		{"id", false, "a b c d e f"},
		{"id", true, "f e d c b a"},
		{"v", false, "a e c b d f"},
		{"v", true, "c a e d b f"},
	} {
		got := idsOf(t, s, store.DocumentQuery{Kind: "k", OrderBy: test.by, Descending: test.descending})
		want(t, fmt.Sprintf("by %q, descending %v", test.by, test.descending), strings.Join(got, " "), test.want)
	}
	apply(t, s, put("k", "c", `{"v": 10}`))
	want(t, "what was changed is last", idsOf(t, s, store.DocumentQuery{Kind: "k"})[5], "c")
}

func metadataPages(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	for i := range 25 {
		apply(t, s, put("k", fmt.Sprintf("%02d", i), `{"v": 1}`))
	}
	var all []string
	for offset := 0; offset < 30; offset += 10 {
		all = append(all, idsOf(t, s, store.DocumentQuery{Kind: "k", OrderBy: "v", Limit: 10, Offset: offset})...)
	}
	want(t, "pages", len(all), 25)
	want(t, "equal ones are in the order of their ids", all[24], "24")
	want(t, "count", must(s.Count(t.Context(), store.DocumentQuery{Kind: "k", Limit: 3, Offset: 20}))(t), 25)
}

func metadataRefusals(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	for _, c := range []store.Change{
		put("k", "a", `[]`), put("k", "a", `{`), put("k", "a", `"x"`), put("k", "a", ``), put("k", "a", "{\"a\": \"\xff\"}"), put("k", "a", `{} {}`),
		put("", "a", `{}`), put("k", "", `{}`), put("k", "a\x00b", `{}`), put("k", "\xff", `{}`),
	} {
		refused(t, fmt.Sprintf("%q with body %q", c.ID, c.Body), s.Apply(t.Context(), put("k", "good", `{}`), c))
	}
	want(t, "nothing was written", bodyOf(t, s, "k", "good"), "")
	for _, field := range []string{"", "a b", "a'", "a') OR 1=1 --", "a..b", ".a", "a.", "$", "a[0]", "ü", "a\"b", "a;b", "1a", `a\`} {
		for _, q := range []store.DocumentQuery{
			{Kind: "k", Where: []store.Condition{{Field: field, Op: store.Eq, Value: "x"}}},
			{Kind: "k", OrderBy: field + "'"},
		} {
			_, err := s.Query(t.Context(), q)
			refused(t, fmt.Sprintf("%+v", q), err)
		}
	}
	for _, c := range []store.Condition{
		{Field: "v", Op: "like", Value: "x"},
		{Field: "v", Op: store.Lt, Value: true},
		{Field: "v", Op: store.Gt, Value: nil},
		{Field: "v", Op: store.In, Value: "x"},
		{Field: "v", Op: store.Prefix, Value: int64(1)},
		{Field: "v", Op: store.Eq, Value: []any{}},
		{Field: "v", Op: store.In, Value: []any{map[string]any{}}},
		{Field: "id", Op: store.Eq, Value: int64(1)},
		{Field: "id", Op: "like", Value: "x"},
		{Field: "id", Op: store.In, Value: []any{int64(1)}},
	} {
		_, err := s.Count(t.Context(), store.DocumentQuery{Kind: "k", Where: []store.Condition{c}})
		refused(t, fmt.Sprintf("%+v", c), err)
	}
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	typed(t, what, err, tea.ValidationError)
}

func typed(t *testing.T, what string, err error, want tea.ErrorType) {
	t.Helper()
	if e := tea.AsError(err); e == nil || e.Type != want {
		t.Errorf("%s returns %v, want a %s", what, err, want)
	}
}

// canceled checks calls with a context that has ended: each must succeed, or fail with the context's error or one of
// others.
func canceled(t *testing.T, calls map[string]func(ctx context.Context) error, others ...error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls {
		err := call(ctx)
		allowed := func(other error) bool { return errors.Is(err, other) }
		if err != nil && !errors.Is(err, context.Canceled) && !slices.ContainsFunc(others, allowed) {
			t.Errorf("%s with a canceled context returns %v", name, err)
		}
	}
}

// run runs the tests of a suite, each with its own backend from start.
func run[T any](t *testing.T, start func(t *testing.T) T, tests map[string]func(t *testing.T, backend T)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func metadataReopen(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	apply(t, s, put("k", "日本", `{"text": "Grüße \u0000 \ud83d\ude00 '\""}`), put("k", "b", `{}`))
	before := must(s.Query(t.Context(), store.DocumentQuery{Kind: "k"}))(t)
	s = open(t)
	after := must(s.Query(t.Context(), store.DocumentQuery{Kind: "k"}))(t)
	want(t, "documents", after, before)
	apply(t, s, put("k", "c", `{}`))
	want(t, "numbers go on", idsOf(t, s, store.DocumentQuery{Kind: "k"}), []string{"日本", "b", "c"})
}

func metadataMany(t *testing.T, open func(t *testing.T) store.MetadataStore) {
	s := open(t)
	var add, move []store.Change
	for i := range 1200 {
		id := fmt.Sprintf("%04d", i)
		add = append(add, store.Change{Kind: "k", ID: "a/" + id, Body: fmt.Appendf(nil, `{"n":%d}`, i), If: store.New})
		move = append(move, store.Change{Kind: "k", ID: "b/" + id, Body: fmt.Appendf(nil, `{"n":%d}`, i), If: store.New}, store.Change{Kind: "k", ID: "a/" + id, If: 1})
	}
	apply(t, s, add...)
	apply(t, s, move...)
	moved := store.DocumentQuery{Kind: "k", Where: []store.Condition{{Field: "id", Op: store.Prefix, Value: "b/"}}}
	want(t, "moved documents", must(s.Count(t.Context(), moved))(t), len(add))
	want(t, "adding them again", s.Apply(t.Context(), add...), nil)
	want(t, "again is a conflict", errors.Is(s.Apply(t.Context(), add...), store.ErrConflict), true)
}

// must returns a function that returns v, or ends the test with err.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
