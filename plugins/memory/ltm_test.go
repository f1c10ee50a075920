package memory_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestLTMNamespaces(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		for _, space := range []any{nil, "ann", "bob"} {
			params := map[string]any{"key": "likes", "value": fmt.Sprint("pump for ", space), "metadata": map[string]any{"who": space}}
			if space != nil {
				params["namespace"] = space
			}
			same(t, "created", a.do(t, "ltm.store", params)["created"], any(true))
		}
		a.do(t, "ltm.store", map[string]any{"namespace": "ann", "items": []any{map[string]any{"key": "a/1", "value": "valve"}, map[string]any{"key": "a/2", "value": "valve valve"}}})
		for space, want := range map[string]string{"": "pump for <nil>", "ann": "pump for ann", "bob": "pump for bob", "eve": "<nil>"} {
			in := func(params map[string]any) map[string]any { params["namespace"] = space; return params }
			same(t, "retrieve", fmt.Sprint(a.do(t, "ltm.retrieve", in(map[string]any{"key": "likes"}))["value"]), want)
			found := keys(a.do(t, "ltm.search", in(map[string]any{"query": "pump"})))
			same(t, "search in "+space, strings.Join(found, " "), map[bool]string{true: "likes"}[space != "eve"])
			listed := a.do(t, "ltm.list", in(map[string]any{}))
			same(t, "list in "+space, listed["count"], map[string]any{"": int64(1), "ann": int64(3), "bob": int64(1), "eve": int64(0)}[space])
		}
		same(t, "no other namespace", len(keys(a.do(t, "ltm.search", map[string]any{"query": "valve"}))), 0)

		// Vectors of one namespace are not found from another one.
		for _, space := range []string{"", "ann", "bob"} {
			a.do(t, "memory.backfill_embeddings", map[string]any{"namespace": space})
		}
		for _, mode := range []string{"vector", "hybrid"} {
			got := keys(a.do(t, "ltm.search", map[string]any{"namespace": "ann", "query": "valve", "mode": mode}))
			same(t, mode, strings.Join(got, " "), "a/1 a/2 likes")
			got = keys(a.do(t, "ltm.search", map[string]any{"namespace": "bob", "query": "valve", "mode": mode}))
			same(t, mode+" of another", strings.Join(got, " "), "likes")
			got = keys(a.do(t, "ltm.search", map[string]any{"query": "valve", "mode": mode}))
			same(t, mode+" of the default", strings.Join(got, " "), "likes")
		}
		rows := a.do(t, "memory.sql_query", map[string]any{"sql": "SELECT namespace, key FROM memories ORDER BY namespace, key"})["rows"]
		same(t, "SQL", fmt.Sprint(rows), "[map[key:likes namespace:] map[key:a/1 namespace:ann] map[key:a/2 namespace:ann] map[key:likes namespace:ann] map[key:likes namespace:bob]]")

		gone := a.do(t, "ltm.delete", map[string]any{"namespace": "ann", "prefix": "a/"})
		same(t, "deleted", []any{gone["deleted"], gone["count"], gone["key"]}, []any{true, int64(2), nil})
		gone = a.do(t, "ltm.delete", map[string]any{"namespace": "bob", "key": "likes"})
		same(t, "deleted one", []any{gone["deleted"], gone["count"], gone["key"]}, []any{true, int64(1), "likes"})
		same(t, "the others stay", fmt.Sprint(a.do(t, "ltm.list", map[string]any{"namespace": "ann", "keys_only": true})["count"], a.do(t, "ltm.list", nil)["count"]), "1 1")
		for _, params := range []map[string]any{{}, {"key": "a", "prefix": "b"}, {"prefix": ""}, {"key": "a", "namespace": "a\nb"}} {
			a.fails(t, tea.ValidationError, "ltm.delete", params)
		}
	})
}

func TestLTMSearchModes(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		a.fails(t, tea.ValidationError, "ltm.search", map[string]any{"query": "pump", "mode": "vector"}) // no vectors yet
		// In this order: equal scores are in the order in which they were stored.
		for _, e := range [][2]string{
			{"words", "rattle"},            // the query's word, another topic
			{"both", "rattle pump"},        // both
			{"vector", "pump pump"},        // the query's topic only
			{"other", "lunch"},             // neither
			{"more", "lunch pump weather"}, // a little of the topic
		} {
			a.do(t, "ltm.store", map[string]any{"key": e[0], "value": e[1], "metadata": map[string]any{"n": len(e[0])}})
		}
		a.do(t, "memory.backfill_embeddings", nil)
		a.do(t, "ltm.store", map[string]any{"key": "late", "value": "rattle rattle rattle pump"}) // has no vector
		search := func(params map[string]any) string {
			params["query"] = "rattle"
			params["embedding"] = []any{0, 1, 0, 0, 0}
			return strings.Join(keys(a.do(t, "ltm.search", params)), " ")
		}
		same(t, "text", strings.Join(keys(a.do(t, "ltm.search", map[string]any{"query": "rattle"})), " "), "late words both")
		same(t, "vector", search(map[string]any{"mode": "vector", "limit": 3}), "vector both more")
		same(t, "hybrid", search(map[string]any{"mode": "hybrid"}), "both words late vector more other")
		same(t, "filtered", search(map[string]any{"mode": "hybrid", "metadata_filter": map[string]any{"n": map[string]any{"gte": 5}}}), "words vector other")
		same(t, "below a prefix", search(map[string]any{"mode": "hybrid", "prefix": "v"}), "vector")

		found := a.do(t, "ltm.search", map[string]any{"query": "rattle", "mode": "hybrid", "embedding": []any{0, 1, 0, 0, 0}, "limit": 1})
		best := found["results"].([]any)[0].(map[string]any)
		if got, want := best["score"].(float64), 1./62+1./63; got-want > 1e-12 || want-got > 1e-12 {
			t.Errorf("the score is %v, want 1/62 + 1/63 = %v", got, want)
		}
		same(t, "its value", best["value"], any("rattle pump"))
		same(t, "by a query that is embedded", keys(a.do(t, "ltm.search", map[string]any{"query": "pump", "mode": "vector", "limit": 1}))[0], "both")
		var paged []string
		for cursor := ""; ; {
			page := a.do(t, "ltm.search", map[string]any{"query": "rattle", "mode": "hybrid", "embedding": []any{0, 1, 0, 0, 0}, "limit": 4, "cursor": cursor, "keys_only": true})
			paged = append(paged, keys(page)...)
			if cursor = page["next_cursor"].(string); cursor == "" {
				break
			}
		}
		same(t, "in pages", strings.Join(paged, " "), "both words late vector more other")
		for _, params := range []map[string]any{
			{"mode": "vector"},
			{"mode": "hybrid"},
			{"mode": "hybrid", "embedding": []any{1, 0, 0, 0, 0}},
			{"mode": "text", "query": "a", "embedding": []any{1}},
			{"mode": "vector", "embedding": []any{1}},
			{"mode": "other", "query": "a"},
			{"query": "a", "cursor": "b"},
			{"query": "a", "cursor": "-1"},
		} {
			a.fails(t, tea.ValidationError, "ltm.search", params)
		}
	})
}

func TestLTMHybridWithoutAModel(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		a.do(t, "ltm.store", map[string]any{"key": "a", "value": "pump"})
		a.fails(t, tea.DependencyMissing, "ltm.search", map[string]any{"query": "pump", "mode": "hybrid"})
	})
}

// TestLTMPagesFitAConnection lists and searches more than 64 MiB.
func TestLTMPagesFitAConnection(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	eachEngine(t, func(t *testing.T, engine string) {
		if engine == "sqlite" {
			withoutRaceDetector(t)
		}
		a := openAgent(t, teatest.Linked(memory.Bundle()), noHost(), map[string]any{"path": t.TempDir(), "engine": engine})
		defer a.close(t)
		large := strings.Repeat("pump ", 1<<20)
		for i := range 16 {
			a.do(t, "ltm.store", map[string]any{"key": fmt.Sprintf("%02d", i), "value": large + fmt.Sprint(i)})
		}
		for action, params := range map[string]map[string]any{"ltm.list": {}, "ltm.search": {"query": "pump"}} {
			seen := map[string]bool{}
			for cursor := ""; ; {
				params["cursor"], params["limit"] = cursor, 100
				page := a.do(t, action, params)
				list, _ := page["results"].([]any)
				if action == "ltm.list" {
					list = page["entries"].([]any)
				}
				bytes := 0
				for _, e := range list {
					entry := e.(map[string]any)
					seen[entry["key"].(string)] = true
					bytes += len(entry["value"].(string))
				}
				if bytes > 64<<20 || len(list) == 0 {
					t.Errorf("%s: a page of %d entries and %d bytes", action, len(list), bytes)
				}
				if cursor = page["next_cursor"].(string); cursor == "" {
					break
				}
			}
			same(t, action, len(seen), 16)
			delete(params, "cursor")
			params["keys_only"] = true
			page := a.do(t, action, params)
			same(t, "keys only", []any{page["count"], page["next_cursor"]}, []any{int64(16), ""})
		}
	})
}

func TestLTMStoreSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		nothing := a.do(t, "ltm.store", map[string]any{"items": []any{}})
		same(t, "nothing", fmt.Sprint(nothing["stored"], nothing["created"], nothing["deduplicated"]), "false false false")
		twice := a.fails(t, tea.ValidationError, "ltm.store", map[string]any{"items": []any{
			map[string]any{"key": "a", "value": 1}, map[string]any{"key": "b", "value": 1}, map[string]any{"key": "a", "value": 1},
		}})
		same(t, "twice", strings.Contains(twice, `items 0 and 2 have the same key "a"`), true)
		for _, raw := range []string{"{\"key\": \"a\xff\", \"value\": 1}", `{"key": "a\ufffd", "value": 1}`, `{"key": "a", "namespace": "\ufffd", "value": 1}`} {
			_, err := a.Invoke(t.Context(), &tea.Request{Action: "ltm.store", Params: tea.RawPayload([]byte(raw)), Call: tea.Call{Attempt: 1}, Host: a.host})
			if typeOf(err) != tea.ValidationError || !contains(err, "UTF-8") {
				t.Errorf("%q: %v", raw, err)
			}
		}
		same(t, "nothing was stored", a.do(t, "ltm.list", nil)["count"], any(int64(0)))
	})
}

func TestLTMSearchSaysThatAQueryWasTruncated(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		var items []any
		for i := range 1100 {
			items = append(items, map[string]any{"key": fmt.Sprint("k", i), "value": fmt.Sprintf("pump word%04d", i)})
		}
		a.do(t, "ltm.store", map[string]any{"items": items})
		for query, want := range map[string]any{
			"pump": nil, "word00*": nil, "word*": true, "pump " + strings.Repeat("x ", 100): nil,
			func() (q string) {
				for i := range 65 {
					q += fmt.Sprintf("word%04d ", i)
				}
				return q
			}(): true,
		} {
			same(t, query, a.do(t, "ltm.search", map[string]any{"query": query})["query_truncated"], want)
		}
	})
}

// TestADamagedRowIsOneOfManyResults changes rows behind the memory's back.
func TestADamagedRowIsOneOfManyResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := map[string]any{"path": dir, "engine": "sqlite"}
	o := mustOpen(t, settings)
	for i := range 4 {
		o.must("ltm.store", map[string]any{"key": fmt.Sprint(i), "value": fmt.Sprint("pump ", i), "metadata": map[string]any{"n": i}})
	}
	o.close()
	db, err := sql.Open("sqlite", filepath.Join(dir, "memory.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{`UPDATE ltm SET value = '"pump 7"' WHERE key = '1'`, `UPDATE ltm SET value = '"pump' WHERE key = '2'`, `UPDATE ltm SET metadata = '{' WHERE key = '3'`} {
		if _, err := db.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o = mustOpen(t, settings)
	defer o.close()
	for action, params := range map[string]map[string]any{"ltm.list": {}, "ltm.search": {"query": "pump 0 1 2 3"}} {
		result := o.must(action, params)
		list, ok := result["entries"].([]any)
		if !ok {
			list = result["results"].([]any)
		}
		seen := map[string]string{}
		for _, e := range list {
			entry := e.(map[string]any)
			seen[entry["key"].(string)] = fmt.Sprint(entry["value"], entry["damaged"])
		}
		same(t, action, fmt.Sprint(seen), "map[0:pump 0<nil> 1:<nil> true 2:<nil> true 3:<nil> true]")
	}
	if _, err := o.call("ltm.retrieve", map[string]any{"key": "1"}); typeOf(err) != tea.InternalError || !contains(err, "damaged") {
		t.Errorf("retrieve: %v", err)
	}
}

func TestALockTimeoutOfZeroDoesNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := mustOpen(t, map[string]any{"path": dir, "engine": "sqlite", "warmup": true})
	defer first.close()
	_, err := openBundle(t, map[string]any{"path": dir, "engine": "sqlite", "warmup": true, "lock_timeout": 0})
	if typeOf(err) != tea.ConnectionError || !contains(err, "waited 0s") {
		t.Error(err)
	}
}
