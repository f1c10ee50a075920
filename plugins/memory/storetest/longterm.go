package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Start is the initial time of a test's clock.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// OpenLongTerm opens the memory of a test with a clock. The first call in a test
// returns an empty memory; each later call closes the memory, as [Opened] does,
// and reopens the same entries. Config.InlineBytes of the memory is 1,024, the
// default of the settings.
type OpenLongTerm func(t *testing.T, now func() time.Time) store.LongTermMemory

// LongTermMemory runs the suite of [store.LongTermMemory]. If the memory lacks
// full-text search, a search with a text must fail with the error of
// [store.Unsupported]; the tests of its results are skipped.
func LongTermMemory(t *testing.T, open OpenLongTerm, lacks ...store.Capability) {
	t.Helper()
	start := func(t *testing.T) *memory {
		t.Helper()
		m := &memory{open: open, noText: slices.Contains(lacks, store.FullText)}
		m.reopen(t)
		return m
	}
	tests := map[string]func(t *testing.T, m *memory){
		"round trip":         longTermRoundTrip,
		"what is stored":     longTermStored,
		"keys":               longTermKeys,
		"refusals":           longTermRefusals,
		"all or none":        longTermAllOrNone,
		"one batch":          longTermBatch,
		"large values":       longTermLarge,
		"search":             longTermSearch,
		"search is exact":    longTermSearchExact,
		"search by metadata": longTermMetadata,
		"ranking":            longTermRanking,
		"list":               longTermList,
		"expiry":             longTermExpiry,
		"clock set back":     longTermClock,
		"sweep":              longTermSweep,
		"sweep and write":    longTermSweepAndWrite,
		"concurrent":         longTermConcurrent,
		"namespaces":         longTermNamespaces,
		"delete by prefix":   longTermDeletePrefix,
		"pages":              longTermPages,
		"required words":     longTermRequired,
		"closed":             longTermClosed,
		"canceled":           longTermCanceled,
	}
	if slices.Contains(lacks, store.FullText) {
		for _, name := range []string{"search", "search is exact", "ranking"} {
			delete(tests, name)
		}
	}
	run(t, start, tests)
}

// memory is a backend with a clock that the test sets.
type memory struct {
	store.LongTermMemory
	open   OpenLongTerm
	noText bool         // a search with a text must fail
	passed atomic.Int64 // nanoseconds since Start
}

func (m *memory) reopen(t *testing.T) {
	t.Helper()
	m.LongTermMemory = m.open(t, func() time.Time { return Start.Add(time.Duration(m.passed.Load())) })
}

func (m *memory) pass(since time.Duration) { m.passed.Store(int64(since)) }

func (m *memory) store(t *testing.T, key, value string, ttl time.Duration) store.Stored {
	t.Helper()
	return m.batch(t, store.Entry{Key: key, Value: json.RawMessage(value), TTL: ttl})[0]
}

func (m *memory) batch(t *testing.T, entries ...store.Entry) []store.Stored {
	t.Helper()
	stored := must(m.Store(t.Context(), entries...))(t)
	return stored
}

func (m *memory) remove(t *testing.T, key string) bool {
	t.Helper()
	deleted := must(m.Delete(t.Context(), "", key))(t)
	return deleted
}

func (m *memory) value(t *testing.T, key string) string {
	t.Helper()
	found, err := m.Retrieve(t.Context(), "", key)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(found.Value)
}

// search returns the results of a query; ok is false if the memory lacks
// full-text search and returns the right error.
func (m *memory) search(t *testing.T, query store.Search) (results store.Results, ok bool) {
	t.Helper()
	results, err := m.Search(t.Context(), query)
	if m.noText && query.Text != "" {
		if typed(t, "a search", err, tea.DependencyMissing); !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("a search returns %v, want store.Unsupported", err)
		}
		return results, false
	}
	if err != nil {
		t.Errorf("%+v: %v", query, err)
	}
	return results, err == nil
}

func (m *memory) finds(t *testing.T, what string, query store.Search, keys string) {
	t.Helper()
	if !m.noText || query.Text == "" {
		want(t, what, m.found(t, query), keys)
		return
	}
	m.search(t, query)
}

// findsAny checks the keys of a search in any order.
func (m *memory) findsAny(t *testing.T, what string, query store.Search, keys string) {
	t.Helper()
	if !m.noText || query.Text == "" {
		found := strings.Fields(m.found(t, query))
		slices.Sort(found)
		want(t, what, strings.Join(found, " "), keys)
		return
	}
	m.search(t, query)
}

func (m *memory) findsSome(t *testing.T, what string, query store.Search, n int) {
	t.Helper()
	if !m.noText || query.Text == "" {
		want(t, what, len(strings.Fields(m.found(t, query))), n)
		return
	}
	m.search(t, query)
}

func (m *memory) found(t *testing.T, query store.Search) string {
	t.Helper()
	if query.Limit == 0 {
		query.Limit = 1000
	}
	results, _ := m.search(t, query)
	keys := make([]string, len(results.Found))
	for i, r := range results.Found {
		keys[i] = r.Key
	}
	return strings.Join(keys, " ")
}

func (m *memory) listed(t *testing.T, list store.List) string {
	t.Helper()
	if list.Limit == 0 {
		list.Limit = 1000
	}
	page, err := m.List(t.Context(), list)
	if err != nil {
		t.Fatalf("%+v: %v", list, err)
	}
	keys := make([]string, len(page.Entries))
	for i, e := range page.Entries {
		keys[i] = e.Key
	}
	return strings.Join(keys, " ")
}

func longTermRoundTrip(t *testing.T, m *memory) {
	values := map[string]string{
		`null`: `null`, `false`: `false`, ` [ ] `: `[]`, `{}`: `{}`, `""`: `""`, `0`: `0`, `-1.50`: `-1.5`, `1.0`: `1.0`,
		`12345678901234567890123`:             `12345678901234567890123`,
		`{"b": 1, "a": {"d": [1, "x"]}}`:      `{"a":{"d":[1,"x"]},"b":1}`,
		`"Grüße \u0000 \ud83d\ude00 '\" \\ "`: `"Grüße \u0000 😀 '\" \\ "`,
	}
	i := 0
	for value := range values {
		m.store(t, fmt.Sprint(i), value, 0)
		i++
	}
	for range 2 {
		got := map[string]string{}
		page := must(m.List(t.Context(), store.List{Limit: 100}))(t)
		for _, e := range page.Entries {
			got[m.value(t, e.Key)] = string(e.Value)
		}
		wanted := map[string]string{}
		for _, canonical := range values {
			wanted[canonical] = canonical
		}
		want(t, "values, one by one and listed", got, wanted)
		m.reopen(t)
	}
}

func longTermStored(t *testing.T, m *memory) {
	first := m.store(t, "a", `{"b": 2, "a": 1}`, 0)
	want(t, "the first", first, store.Stored{
		Created: true, Inlined: true, ByteSize: 13, ContentHash: "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777",
	})
	before := m.entry(t, "a")
	want(t, "an entry", before, store.Memory{
		ID: before.ID, Key: "a", Value: json.RawMessage(`{"a":1,"b":2}`), ContentHash: first.ContentHash, CreatedAt: Start, UpdatedAt: Start,
	})
	m.pass(time.Minute)
	again := m.store(t, "a", `{"a": 1, "b": 2}`, 0)
	want(t, "the same content", again, store.Stored{Deduplicated: true, Inlined: true, ByteSize: 13, ContentHash: first.ContentHash})
	want(t, "what was not written", m.entry(t, "a"), before)
	with := store.Entry{Key: "a", Value: json.RawMessage(`{"a":1,"b":2}`), Metadata: json.RawMessage(`{"m": null, "k": 1}`)}
	want(t, "other metadata", m.batch(t, with)[0].Deduplicated, false)
	before.UpdatedAt, before.Metadata = Start.Add(time.Minute), json.RawMessage(`{"k":1,"m":null}`)
	want(t, "changed", m.entry(t, "a"), before)
	want(t, "the same metadata", m.batch(t, with)[0].Deduplicated, true)
	m.store(t, "a", `{"a":1,"b":2}`, 0)
	if after := m.entry(t, "a"); after.Metadata != nil {
		t.Errorf("metadata %s stayed", after.Metadata)
	}
	want(t, "other content", m.store(t, "a", `1`, 0).Created, false)
	want(t, "deleted", m.remove(t, "a"), true)
	want(t, "deleted again", m.remove(t, "a"), false)
	want(t, "created again", m.store(t, "a", `1`, 0).Created, true)
}

func longTermKeys(t *testing.T, m *memory) {
	keys := []string{
		"a", "A", " a", "a ", "ä", "a\u0308", "a%", "a_", "a'b\"c", `a\`, "a/b", "a\x00b", "a\nb", "日本", "\U0001F600", "%", "*", "?", "NULL", "0", "00",
		strings.Repeat("k", 4096), strings.Repeat("k", 4095) + "l",
	}
	for i, key := range keys {
		want(t, fmt.Sprintf("%.20q is created", key), m.store(t, key, fmt.Sprint(i), 0).Created, true)
	}
	for range 2 {
		for i, key := range keys {
			want(t, fmt.Sprintf("under %.20q", key), m.value(t, key), fmt.Sprint(i))
			want(t, fmt.Sprintf("with the prefix %.20q", key), strings.Contains(m.listed(t, store.List{Prefix: key}), key), true)
		}
		m.reopen(t)
	}
	for _, key := range keys {
		want(t, fmt.Sprintf("%.20q is deleted", key), m.remove(t, key), true)
	}
	want(t, "what is left", m.listed(t, store.List{}), "")
}

func longTermRefusals(t *testing.T, m *memory) {
	good := store.Entry{Key: "good", Value: json.RawMessage(`1`)}
	for name, e := range map[string]store.Entry{
		"no key":              {Value: json.RawMessage(`1`)},
		"a long key":          {Key: strings.Repeat("k", 4097), Value: json.RawMessage(`1`)},
		"a key that is bytes": {Key: "a\xff", Value: json.RawMessage(`1`)},
		"no value":            {Key: "k"},
		"half a value":        {Key: "k", Value: json.RawMessage(`{"a":`)},
		"two values":          {Key: "k", Value: json.RawMessage(`1 2`)},
		"metadata in a list":  {Key: "k", Value: json.RawMessage(`1`), Metadata: json.RawMessage(`[]`)},
		"metadata of null":    {Key: "k", Value: json.RawMessage(`1`), Metadata: json.RawMessage(`null`)},
		"broken metadata":     {Key: "k", Value: json.RawMessage(`1`), Metadata: json.RawMessage(`{`)},
		"a negative ttl":      {Key: "k", Value: json.RawMessage(`1`), TTL: -1},
	} {
		_, err := m.Store(t.Context(), good, e)
		refused(t, name, err)
	}
	_, err := m.Store(t.Context(), good, store.Entry{Key: "other", Value: json.RawMessage(`1`)}, good)
	refused(t, "a key twice", err)
	want(t, "nothing was stored", m.listed(t, store.List{}), "")
	for _, key := range []string{"", strings.Repeat("k", 4097), "a\xff"} {
		want(t, fmt.Sprintf("%.10q has no value", key), m.value(t, key), "")
		want(t, fmt.Sprintf("%.10q is not deleted", key), m.remove(t, key), false)
	}
	_, err = m.Search(t.Context(), store.Search{Prefix: "\xff", Limit: 1})
	refused(t, "a search below bytes", err)
	_, err = m.List(t.Context(), store.List{After: "\xff", Limit: 1})
	refused(t, "a list after bytes", err)
}

func longTermAllOrNone(t *testing.T, m *memory) {
	m.store(t, "a", `"meadow"`, 0)
	_, err := m.Store(t.Context(),
		store.Entry{Key: "a", Value: json.RawMessage(`"harbor"`)}, store.Entry{Key: "b", Value: json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)}, store.Entry{Key: "c"})
	refused(t, "the last has no value", err)
	want(t, "a", m.value(t, "a"), `"meadow"`)
	want(t, "all", m.listed(t, store.List{}), "a")
	m.finds(t, "found", store.Search{Text: "meadow harbor"}, "a")
}

func longTermBatch(t *testing.T, m *memory) {
	m.store(t, "5", `"early harbor"`, 0)
	m.store(t, "7", `"early harbor"`, 0)
	m.finds(t, "found before", store.Search{Text: "harbor"}, "5 7")
	var entries []store.Entry
	for i := range 750 {
		entries = append(entries, store.Entry{Key: fmt.Sprint(i), Value: json.RawMessage(fmt.Sprintf(`"number%dx meadow"`, i))})
	}
	m.batch(t, entries...)
	for i := range entries {
		entries[i].Value = json.RawMessage(fmt.Sprintf(`"number%dx meadow"`, i+750))
	}
	entries = append(entries, store.Entry{Key: "new", Value: json.RawMessage(`"number1500x"`)})
	stored := m.batch(t, entries...)
	want(t, "results", len(stored), 751)
	want(t, "created", []bool{stored[0].Created, stored[5].Created, stored[750].Created}, []bool{false, false, true})
	want(t, "removed again", m.remove(t, "new"), true)
	for range 2 {
		want(t, "the later one wins", m.value(t, "3"), `"number753x meadow"`)
		// New entries and changed ones alternate.
		for _, i := range []int{4, 5, 6, 7, 8} {
			m.finds(t, "found", store.Search{Text: fmt.Sprintf("number%dx", i+750)}, fmt.Sprint(i))
			m.finds(t, "overtaken", store.Search{Text: fmt.Sprintf("number%dx", i)}, "")
		}
		m.findsSome(t, "all", store.Search{Text: "meadow"}, 750)
		m.finds(t, "what was there", store.Search{Text: "harbor"}, "")
		m.reopen(t)
	}
	want(t, "no entries", len(m.batch(t)), 0)
}

func longTermLarge(t *testing.T, m *memory) {
	large := func(word string, n int) string { return `"` + strings.Repeat(word+" ", n) + `"` }
	sizes := map[string]string{"small": large("pear", 100), "edge": large("apple", 170), "more": large("plum", 205), "huge": large("quince", 700_000)}
	for key, value := range sizes {
		stored := m.store(t, key, value, 0)
		want(t, key+" is inlined", stored.Inlined, len(value) < 1024)
		want(t, key+" has its size", stored.ByteSize, int64(len(value)))
	}
	want(t, "the same content elsewhere", m.store(t, "twin", sizes["more"], 0).Created, true)
	for range 2 {
		for key, value := range sizes {
			if got := m.value(t, key); got != value {
				t.Errorf("%s has %d bytes, want %d", key, len(got), len(value))
			}
		}
		m.finds(t, "found", store.Search{Text: "quinces"}, "huge")
		m.reopen(t)
	}
	want(t, "deleted", m.remove(t, "more"), true)
	m.store(t, "huge", `"small now"`, 0)
	if _, err := m.Sweep(t.Context(), Start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	want(t, "the twin stays", len(m.value(t, "twin")), len(sizes["more"]))
	want(t, "what became small", m.value(t, "huge"), `"small now"`)
	m.store(t, "more", sizes["more"], 0)
	m.store(t, "huge", sizes["huge"], 0)
	want(t, "again", []int{len(m.value(t, "more")), len(m.value(t, "huge"))}, []int{len(sizes["more"]), len(sizes["huge"])})
}

func longTermConcurrent(t *testing.T, m *memory) {
	const goroutines, each = 16, 15
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%02d/%02d", g, i)
				m.store(t, key, fmt.Sprintf(`"word%dx%d common %s"`, g, i, strings.Repeat("x", i%3*700)), 0)
				m.store(t, "shared", fmt.Sprintf(`"shared %d"`, g), 0)
				m.finds(t, key+" is found", store.Search{Text: fmt.Sprintf("word%dx%d", g, i)}, key)
				if i%5 == 4 {
					want(t, key+" is deleted", m.remove(t, key), true)
					m.finds(t, key+" is not found", store.Search{Text: fmt.Sprintf("word%dx%d", g, i)}, "")
				}
			}
		})
	}
	group.Wait()
	for range 2 {
		m.findsSome(t, "found", store.Search{Text: "common"}, goroutines*each*4/5)
		want(t, "listed", len(strings.Fields(m.listed(t, store.List{Prefix: "0"}))), 10*each*4/5)
		m.finds(t, "shared", store.Search{Text: "shared"}, "shared")
		m.reopen(t)
	}
}

// longTermCalls returns all calls except Close.
func longTermCalls(m store.LongTermMemory) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Store": func(ctx context.Context) error {
			_, err := m.Store(ctx, store.Entry{Key: "a", Value: json.RawMessage(`1`)})
			return err
		},
		"Retrieve": func(ctx context.Context) error { _, err := m.Retrieve(ctx, "", "a"); return err },
		"Delete":   func(ctx context.Context) error { _, err := m.Delete(ctx, "", "a"); return err },
		"Search": func(ctx context.Context) error {
			_, err := m.Search(ctx, store.Search{Text: "a", Limit: 1})
			return err
		},
		"DeletePrefix": func(ctx context.Context) error { _, err := m.DeletePrefix(ctx, "", "a"); return err },
		"List":         func(ctx context.Context) error { _, err := m.List(ctx, store.List{Limit: 1}); return err },
		"Sweep":        func(ctx context.Context) error { _, err := m.Sweep(ctx, Start); return err },
	}
}

func longTermClosed(t *testing.T, m *memory) {
	m.store(t, "a", `"a"`, 0)
	before := m.LongTermMemory
	m.reopen(t)
	for name, call := range longTermCalls(before) {
		typed(t, name+" after Close", call(t.Context()), tea.ConnectionError)
	}
	want(t, "the value", m.value(t, "a"), `"a"`)
}

func longTermCanceled(t *testing.T, m *memory) {
	m.store(t, "a", `"a"`, 0)
	canceled(t, longTermCalls(m.LongTermMemory), store.ErrNotFound, store.ErrUnsupported)
	m.store(t, "b", `"b"`, 0)
	want(t, "afterwards", m.value(t, "b"), `"b"`)
}
