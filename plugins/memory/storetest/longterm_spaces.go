package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// longTermNamespaces stores the same keys in namespaces with similar names, and
// reads each namespace with every call.
func longTermNamespaces(t *testing.T, m *memory) {
	const last = "\U0010FFFF"
	spaces := []string{"", "a", "a/b", "A", "ä", " ", "%", "*", last, strings.Repeat("n", 256)}
	keys := []string{"a", "b/c", last + "x", last, "a\x01b"}
	for i, space := range spaces {
		var entries []store.Entry
		for _, key := range keys {
			entries = append(entries, store.Entry{Namespace: space, Key: key, Value: fmt.Appendf(nil, `"common word%dx"`, i), Metadata: fmt.Appendf(nil, `{"n": %d}`, i)})
		}
		m.batch(t, entries...)
	}
	ordered := strings.Join([]string{"a", "a\x01b", "b/c", last, last + "x"}, " ")
	for range 2 {
		for i, space := range spaces {
			what := fmt.Sprintf("in %.20q", space)
			want(t, what, m.listed(t, store.List{Namespace: space}), ordered)
			want(t, "below a prefix "+what, m.listed(t, store.List{Namespace: space, Prefix: "a"}), "a a\x01b")
			want(t, "after a key "+what, m.listed(t, store.List{Namespace: space, After: "a"}), "a\x01b b/c "+last+" "+last+"x")
			want(t, "without a text "+what, m.found(t, store.Search{Namespace: space}), ordered)
			for j := range spaces {
				m.findsSome(t, fmt.Sprintf("the word of %.20q %s", spaces[j], what), store.Search{Namespace: space, Text: fmt.Sprintf("word%dx", j)}, map[bool]int{true: len(keys)}[i == j])
			}
			m.findsSome(t, "common "+what, store.Search{Namespace: space, Text: "common"}, len(keys))
			m.findsSome(t, "a phrase "+what, store.Search{Namespace: space, Text: fmt.Sprintf(`"common word%dx"`, i)}, len(keys))
			m.findsSome(t, "filtered "+what, store.Search{Namespace: space, Text: "common", Metadata: Filter(t, map[string]any{"n": (i + 1) % len(spaces)})}, 0)
			for _, key := range keys {
				e := must(m.Retrieve(t.Context(), space, key))(t)
				want(t, "the value "+what, string(e.Value), fmt.Sprintf(`"common word%dx"`, i))
				want(t, "the name "+what, []string{e.Namespace, e.Key}, []string{space, key})
			}
		}
		want(t, "nobody's namespace", m.listed(t, store.List{Namespace: "nobody"}), "")
		m.finds(t, "found in nobody's namespace", store.Search{Namespace: "nobody", Text: "common"}, "")
		m.reopen(t)
	}
	deleted, err := m.Delete(t.Context(), "a", "b/c")
	want(t, "deleted", []any{deleted, err}, []any{true, error(nil)})
	for _, space := range spaces {
		want(t, "left of the key", strings.Contains(m.listed(t, store.List{Namespace: space}), "b/c"), space != "a")
		m.findsSome(t, "found "+space, store.Search{Namespace: space, Text: "common"}, map[bool]int{true: len(keys) - 1, false: len(keys)}[space == "a"])
	}
	for _, space := range []string{"\xff", "a\x01", "a\nb", "\x7f", strings.Repeat("n", 257)} {
		_, storing := m.Store(t.Context(), store.Entry{Namespace: space, Key: "a", Value: json.RawMessage("1")})
		_, retrieving := m.Retrieve(t.Context(), space, "a")
		_, deleting := m.Delete(t.Context(), space, "a")
		_, all := m.DeletePrefix(t.Context(), space, "a")
		query := store.Search{Namespace: space, Text: "a", Limit: 1}
		if m.noText {
			query.Text = ""
		}
		_, searching := m.Search(t.Context(), query)
		_, listing := m.List(t.Context(), store.List{Namespace: space, Limit: 1})
		for i, err := range []error{storing, retrieving, deleting, all, searching, listing} {
			refused(t, fmt.Sprintf("call %d with the namespace %.20q", i, space), err)
		}
	}
}

func longTermDeletePrefix(t *testing.T, m *memory) {
	var entries []store.Entry
	for i := range 2300 {
		entries = append(entries, store.Entry{Key: fmt.Sprintf("a/%04d", i), Value: json.RawMessage(`"pump"`)})
	}
	for _, key := range []string{"a", "a.", "a0", "b", "A/1", "a/%", "a/x"} {
		entries = append(entries, store.Entry{Key: key, Value: json.RawMessage(`"pump ` + strings.Repeat("large ", 300) + `"`)}, store.Entry{Namespace: "n", Key: key, Value: json.RawMessage(`"pump"`)})
	}
	m.batch(t, entries...)
	m.store(t, "a/gone", `"pump"`, 1)
	m.pass(1)
	remove := func(space, prefix string, n int) {
		t.Helper()
		want(t, fmt.Sprintf("DeletePrefix(%q, %q)", space, prefix), must(m.DeletePrefix(t.Context(), space, prefix))(t), n)
	}
	remove("", "a/0", 1000)
	remove("", "a/", 1302)
	remove("", "a/", 0)
	remove("n", "a/", 2)
	remove("none", "", 0)
	for range 2 {
		want(t, "what is left", m.listed(t, store.List{}), "A/1 a a. a0 b")
		m.findsSome(t, "what is found", store.Search{Text: "pump"}, 5)
		want(t, "what is left in a namespace", m.listed(t, store.List{Namespace: "n"}), "A/1 a a. a0 b")
		m.reopen(t)
	}
	remove("n", "", 5)
	m.finds(t, "found in an empty namespace", store.Search{Namespace: "n", Text: "pump"}, "")
	want(t, "an empty namespace", m.listed(t, store.List{Namespace: "n"}), "")
	m.findsSome(t, "the default one", store.Search{Text: "pump"}, 5)
}

// longTermPages reads all entries in pages of various sizes.
func longTermPages(t *testing.T, m *memory) {
	var entries []store.Entry
	for i := range 90 {
		entries = append(entries, store.Entry{Key: fmt.Sprintf("k%02d", i), Value: fmt.Appendf(nil, `"pump %s"`, strings.Repeat("x", i%3*2000)), Metadata: fmt.Appendf(nil, `{"n": %d}`, i%2)})
	}
	m.batch(t, entries...)
	even := Filter(t, map[string]any{"n": 0})
	for name, query := range map[string]store.Search{
		"by a limit":             {Limit: 7},
		"by bytes":               {Limit: 1000, MaxBytes: 10_000},
		"one by one":             {Limit: 1000, MaxBytes: 1, Prefix: "k1"},
		"filtered":               {Limit: 7, Metadata: even},
		"filtered by bytes":      {Limit: 7, MaxBytes: 10_000, Metadata: even},
		"keys only":              {Limit: 40, MaxBytes: 1 << 20, KeysOnly: true},
		"keys only, exactly":     {Limit: 45, KeysOnly: true},
		"a limit at the end":     {Limit: 90},
		"more than there are":    {Limit: 1000},
		"below a prefix":         {Limit: 3, Prefix: "k1"},
		"exactly below a prefix": {Limit: 5, Prefix: "k1"},
	} {
		for _, text := range []string{"", "pump"} {
			query := query
			query.Text = text
			if m.noText && text != "" {
				m.search(t, query)
				continue
			}
			total := map[bool]int{true: 45, false: 90}[len(query.Metadata) > 0]
			if query.Prefix != "" {
				total = 10
			}
			seen := map[string]bool{}
			pages := 0
			for more := true; more; pages++ {
				results, ok := m.search(t, query)
				if !ok {
					return
				}
				bytes := 0
				for _, f := range results.Found {
					bytes += len(f.Value) + len(f.Metadata)
					seen[f.Key] = true
					query.After = f.Key
					want(t, name+": has a value", f.Value != nil && f.Metadata != nil, !query.KeysOnly)
				}
				query.Skip += len(results.Found)
				if len(results.Found) == 0 || len(results.Found) > 1 && query.MaxBytes > 0 && int64(bytes) > query.MaxBytes {
					t.Errorf("%s: a page of %d results and %d bytes", name, len(results.Found), bytes)
				}
				if text == "" && len(query.Metadata) == 0 {
					last := results.Found[len(results.Found)-1].Key
					page, err := m.List(t.Context(), store.List{Prefix: query.Prefix, After: beforeKey(results.Found[0].Key), Limit: query.Limit, MaxBytes: query.MaxBytes, KeysOnly: query.KeysOnly})
					want(t, name+": the same list", []any{err, page.More, page.Entries[len(page.Entries)-1].Key}, []any{error(nil), results.More, last})
				}
				more = results.More
			}
			want(t, name+": all of them", len(seen), total)
			want(t, name+": pages that are not full", pages <= (total+query.Limit-1)/query.Limit || query.MaxBytes > 0, true)
		}
	}
}

func beforeKey(key string) string { return key[:len(key)-1] + string(key[len(key)-1]-1) + "~" }

// longTermRequired filters by values that share words or have none: a filter must find only the entry with the value.
func longTermRequired(t *testing.T, m *memory) {
	values := []string{
		`"the"`, `"The"`, `"!?"`, `""`, `"犬"`, `"犬猫"`, `"two words"`, `"words two"`, `"ação"`, `"acao"`, `"x*"`, `"\"x\""`, `"a@b.example"`, `"🎉"`, `"` + strings.Repeat("long ", 100) + `"`,
		`7`, `7.5`, `-7`, `70`, `1000000`, `1e300`, `0`, `true`, `false`, `null`, `["in", "a list"]`, `{"a": 1}`,
	}
	var entries []store.Entry
	for i, v := range values {
		entries = append(entries, store.Entry{Key: fmt.Sprintf("%02d", i), Value: json.RawMessage(`"pump"`), Metadata: []byte(`{"v": ` + v + `}`)})
	}
	entries = append(entries, store.Entry{Key: "float", Value: json.RawMessage(`"pump"`), Metadata: []byte(`{"v": 7.0}`)})
	m.batch(t, entries...)
	for i, v := range values {
		want := must(value.Decode([]byte(v)))(t)
		if _, isObject := want.(map[string]any); isObject {
			want = map[string]any{"eq": want} // otherwise the object would be read as operators
		}
		for _, text := range []string{"", "pump"} {
			keys := fmt.Sprintf("%02d", i)
			if v == "7" {
				keys += " float"
			}
			m.findsAny(t, fmt.Sprintf("the query %q with the filter %.40s", text, v), store.Search{Text: text, Metadata: Filter(t, map[string]any{"v": want})}, keys)
		}
	}
	m.finds(t, "in a list", store.Search{Text: "pump", Metadata: Filter(t, map[string]any{"v": "a list"})}, "25")
}
