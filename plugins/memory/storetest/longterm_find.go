package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func longTermSearch(t *testing.T, m *memory) {
	m.store(t, "sensor/1", `{"text": "The temperatures are rising", "unit": "celsius"}`, 0)
	m.store(t, "sensor/2", `{"text": "A pump failed"}`, 0)
	m.finds(t, "by value", store.Search{Text: "temperature"}, "sensor/1")
	m.store(t, "sensor/2", `{"text": "The pump's temperature is fine"}`, 0)
	m.findsSome(t, "after a change", store.Search{Text: "temperature"}, 2)
	m.finds(t, "the old text", store.Search{Text: "failed"}, "")
	want(t, "deleted", m.remove(t, "sensor/1"), true)
	for range 2 {
		m.finds(t, "after a removal", store.Search{Text: "temperature"}, "sensor/2")
		m.finds(t, "by the key", store.Search{Text: "sensor"}, "sensor/2")
		m.reopen(t)
	}
	m.store(t, "sensor/3", `"temperature"`, 0)
	m.finds(t, "below a prefix", store.Search{Text: "temperature", Prefix: "sensor/3"}, "sensor/3")
	want(t, "without a text", m.found(t, store.Search{Prefix: "sensor/"}), "sensor/2 sensor/3")
	want(t, "one of them", m.found(t, store.Search{Prefix: "sensor/", Limit: 1}), "sensor/2")
	for _, limit := range []int{0, -1} {
		for _, text := range []string{"temperature", ""} {
			want(t, fmt.Sprintf("%q with limit %d", text, limit), len(must(m.Search(t.Context(), store.Search{Text: text, Limit: limit}))(t).Found), 0)
		}
	}
	for _, text := range []string{"nothing", `"`, "*", "the", "AND", "temperature:fine", "(", "'; DROP TABLE ltm", "\x00", "\xff"} {
		if _, err := m.Search(t.Context(), store.Search{Text: text, Limit: 1}); err != nil {
			t.Errorf("%q gives %v", text, err)
		}
	}
}

func longTermSearchExact(t *testing.T, m *memory) {
	for key, value := range map[string]string{
		"1": `{"note": "The café in Zürich opens early"}`,
		"2": `{"note": "early opening hours", "tags": ["cafeteria", {"deep": "lighthouse"}]}`,
		"3": `"opens the valve; early it closes"`,
		"4": `["number", 4711, true, null, 2.5]`,
	} {
		m.store(t, key, value, 0)
	}
	for range 2 {
		for query, keys := range map[string]string{
			"cafe": "1", "CAFÉ": "1", "zurich": "1", `"opens early"`: "1", `"early opens"`: "2", `"early hours"`: "", "caf*": "1 2", "lighthouses": "2", "4711": "4", "note": "", "hour": "2",
		} {
			got := strings.Fields(m.found(t, store.Search{Text: query}))
			if len(got) == 2 && got[0] > got[1] {
				got[0], got[1] = got[1], got[0]
			}
			want(t, query, strings.Join(got, " "), keys)
		}
		m.reopen(t)
	}
}

func longTermMetadata(t *testing.T, m *memory) {
	var entries []store.Entry
	for i := range 300 {
		entries = append(entries, store.Entry{
			Key: fmt.Sprintf("k%03d", i), Value: json.RawMessage(`"common words"`),
			Metadata: fmt.Appendf(nil, `{"kind": %q, "n": %d, "tags": ["x", "t%d"], "word": "meta%dx"}`, []string{"rare", "often"}[min(i%100, 1)], i, i, i),
		})
	}
	m.batch(t, entries...)
	m.store(t, "k300", `"common words without"`, 0)
	for _, text := range []string{"common", ""} {
		for name, test := range map[string]struct {
			metadata map[string]any
			want     string
		}{
			"equal":     {map[string]any{"kind": "rare"}, "k000 k100 k200"},
			"any of":    {map[string]any{"n": []any{int64(7), 299.0}}, "k007 k299"},
			"in a list": {map[string]any{"tags": "t5"}, "k005"},
			"both":      {map[string]any{"kind": "rare", "n": int64(100)}, "k100"},
			"a range":   {map[string]any{"n": map[string]any{"gt": 6, "lte": 8}}, "k007 k008"},
			"nothing":   {map[string]any{"kind": "Rare"}, ""},
		} {
			m.finds(t, name, store.Search{Text: text, Metadata: Filter(t, test.metadata)}, test.want)
		}
		m.finds(t, "the first", store.Search{Text: text, Metadata: Filter(t, map[string]any{"kind": "rare"}), Limit: 2}, "k000 k100")
		m.finds(t, "with a prefix", store.Search{Text: text, Metadata: Filter(t, map[string]any{"kind": "rare"}), Prefix: "k2"}, "k200")
	}
	m.finds(t, "by a word of them", store.Search{Text: "meta123x"}, "k123")
}

func longTermRanking(t *testing.T, m *memory) {
	for i := range 60 {
		m.store(t, fmt.Sprintf("%02d", i), fmt.Sprintf(`"%s%s"`, strings.Repeat("pump ", i%7+1), strings.Repeat("valve ", i%11)), 0)
	}
	query := store.Search{Text: "pump valve", Limit: 40}
	results := must(m.Search(t.Context(), query))(t)
	first := results.Found
	want(t, "results and more", []any{len(first), results.More}, []any{40, true})
	for i := 1; i < len(first); i++ {
		if first[i].Score > first[i-1].Score || first[i].Score <= 0 {
			t.Errorf("result %d has score %v after %v", i, first[i].Score, first[i-1].Score)
		}
	}
	m.reopen(t)
	want(t, "ranking and scores after a restart", must(m.Search(t.Context(), query))(t).Found, first)
}

func longTermList(t *testing.T, m *memory) {
	keys := []string{"A", "Z", "a", "a/1", "a/2", "a%", "a_", "é", "日", "\uffff", "\U0001F600"} // unsorted
	for _, key := range keys {
		m.store(t, key, `1`, 0)
	}
	const ordered = "A Z a a% a/1 a/2 a_ é 日 \uffff \U0001F600"
	want(t, "the bytes' order", m.listed(t, store.List{}), ordered)
	want(t, "the same by a search", m.found(t, store.Search{}), ordered)
	for _, test := range []struct{ prefix, after, want string }{
		{"a/", "", "a/1 a/2"},
		{"a/", "a/1", "a/2"},
		{"a/", "a/2", ""},
		{"a%", "", "a%"},
		{"a_", "", "a_"},
		{"a", "a%", "a/1 a/2 a_"},
		{"", "Z", "a a% a/1 a/2 a_ é 日 \uffff \U0001F600"},
		{"a", "A", "a a% a/1 a/2 a_"},
		{"a", "z", ""},
		{"\U0001F600", "", "\U0001F600"},
		{"b", "", ""},
	} {
		want(t, fmt.Sprintf("prefix %q after %q", test.prefix, test.after), m.listed(t, store.List{Prefix: test.prefix, After: test.after}), test.want)
	}
	var pages []string
	for after := ""; ; {
		page := must(m.List(t.Context(), store.List{After: after, Limit: 4}))(t)
		for _, e := range page.Entries {
			after = e.Key
			pages = append(pages, e.Key)
		}
		if !page.More {
			break
		}
	}
	want(t, "pages", strings.Join(pages, " "), ordered)
	want(t, "a page of no entries", len(must(m.List(t.Context(), store.List{}))(t).Entries), 0)
}

func longTermExpiry(t *testing.T, m *memory) {
	m.store(t, "short", `"pump alarm"`, time.Minute)
	m.store(t, "long", `"pump alarm"`, time.Hour)
	m.store(t, "ever", `"pump"`, 0)
	want(t, "before", m.listed(t, store.List{}), "ever long short")
	m.pass(time.Minute - time.Microsecond)
	want(t, "just before", m.value(t, "short"), `"pump alarm"`)
	m.pass(time.Minute)
	for range 2 {
		want(t, "value", m.value(t, "short"), "")
		m.finds(t, "found", store.Search{Text: "alarm"}, "long")
		want(t, "listed", m.listed(t, store.List{}), "ever long")
		want(t, "found without a text", m.found(t, store.Search{}), "ever long")
		m.reopen(t)
	}
	want(t, "deleted", m.remove(t, "short"), false)
	m.store(t, "short", `"pump"`, time.Minute)
	m.pass(2 * time.Minute)
	stored := m.store(t, "short", `"pump"`, 0)
	want(t, "the same content after its time", []bool{stored.Created, stored.Deduplicated}, []bool{true, false})
	again := m.store(t, "ever", `"pump"`, time.Minute)
	want(t, "the same content with a ttl", []bool{again.Created, again.Deduplicated}, []bool{false, false})
	m.store(t, "long", `"pump alarm"`, 0)
	m.pass(24 * time.Hour)
	want(t, "a ttl is taken back, another one given", m.listed(t, store.List{}), "long short")
	if e := m.entry(t, "short"); !e.CreatedAt.Equal(Start.Add(2*time.Minute)) || !e.ExpiresAt.IsZero() {
		t.Errorf("%+v", e)
	}
}

// longTermClock starts with a clock that is a day ahead, and sets it back.
func longTermClock(t *testing.T, m *memory) {
	m.store(t, "a", `"pump"`, time.Hour)
	m.store(t, "b", `"pump `+strings.Repeat("large ", 500)+`"`, 2*time.Hour)
	m.findsSome(t, "found", store.Search{Text: "pump"}, 2)
	for range 2 {
		m.pass(24 * time.Hour)
		m.reopen(t)
		m.finds(t, "found a day ahead", store.Search{Text: "pump"}, "")
		want(t, "a day ahead", m.listed(t, store.List{}), "")
		if _, err := m.Sweep(t.Context(), Start); err != nil { // the grace period is longer than the jump
			t.Fatal(err)
		}
		m.pass(-24 * time.Hour)
		m.reopen(t)
		m.findsSome(t, "a day behind", store.Search{Text: "pump"}, 2)
		m.pass(0)
		m.reopen(t)
		want(t, "set back", m.listed(t, store.List{}), "a b")
		m.findsSome(t, "found", store.Search{Text: "pump"}, 2)
	}
	m.pass(time.Hour)
	m.finds(t, "in time", store.Search{Text: "pump"}, "b")
}

func longTermSweep(t *testing.T, m *memory) {
	large := `"` + strings.Repeat("large ", 500) + `"`
	var entries []store.Entry
	for i := range 450 {
		entries = append(entries, store.Entry{Key: fmt.Sprint(i), Value: json.RawMessage(large), TTL: time.Duration(i+1) * time.Second})
	}
	m.batch(t, entries...)
	m.pass(time.Hour)
	for _, test := range []struct {
		before time.Duration
		want   int
	}{{0, 0}, {100*time.Second + time.Microsecond, 100}, {100*time.Second + time.Microsecond, 0}, {time.Hour, 350}} {
		want(t, fmt.Sprintf("removed by a sweep before %v", test.before), must(m.Sweep(t.Context(), Start.Add(test.before)))(t), test.want)
	}
	want(t, "created", m.store(t, "1", large, 0).Created, true)
	for range 2 {
		m.finds(t, "found", store.Search{Text: "large"}, "1")
		want(t, "value", len(m.value(t, "1")), len(large))
		m.reopen(t)
	}
}

// longTermSweepAndWrite sweeps while values are stored, removed and stored again.
func longTermSweepAndWrite(t *testing.T, m *memory) {
	values := []string{`"` + strings.Repeat("a ", 1000) + `"`, `"` + strings.Repeat("b ", 1000) + `"`, `1`}
	stop := make(chan struct{})
	var sweeps, writers sync.WaitGroup
	sweeps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := m.Sweep(t.Context(), Start.Add(time.Hour)); err != nil {
				t.Error(err)
			}
		}
	})
	for g := range 4 {
		writers.Go(func() {
			for i := range 30 {
				key, value := fmt.Sprint(g), values[(g+i)%len(values)]
				m.store(t, key, value, 0)
				if got := m.value(t, key); got != value {
					t.Errorf("%.20q is there instead of %.20q", got, value)
				}
				if i%4 == 3 {
					m.remove(t, key)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	sweeps.Wait()
}

// entry returns the entry with a key from List; Retrieve must agree.
func (m *memory) entry(t *testing.T, key string) store.Memory {
	t.Helper()
	page, err := m.List(t.Context(), store.List{Prefix: key, Limit: 1})
	if err != nil || len(page.Entries) != 1 {
		t.Fatalf("list %q: %v, %v", key, page, err)
	}
	got := must(m.Retrieve(t.Context(), "", key))(t)
	same := page.Entries[0]
	got.ID, got.CreatedAt, got.UpdatedAt = same.ID, same.CreatedAt, same.UpdatedAt
	want(t, "the entry "+key, got, same)
	return same
}
