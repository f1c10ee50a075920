package memory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// topics are the axes of the vectors of embedder.
var topics = []string{"pump", "valve", "lunch", "weather"}

// embedder is a host whose model counts the topics in a text. It refuses
// texts with "refuse me".
func embedder() *teatest.Host {
	return &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
		"embedding.create": func(_ context.Context, params any) (any, error) {
			given := params.(map[string]any)
			model, _ := given["model"].(string)
			if model == "" {
				model = "topics"
			}
			embeddings := []any{}
			for _, text := range given["input"].([]any) {
				lower := strings.ToLower(text.(string))
				if strings.Contains(lower, "refuse me") {
					return nil, tea.Errorf(tea.ValidationError, "refused")
				}
				vector := []any{0.01}
				for _, topic := range topics {
					vector = append(vector, float64(strings.Count(lower, topic)))
				}
				if model == "longer" {
					vector = append(vector, 0.5)
				}
				embeddings = append(embeddings, vector)
			}
			return map[string]any{"success": true, "embeddings": embeddings, "model": model}, nil
		},
	}}
}

// keys returns the keys of the results of a search.
func keys(result map[string]any) []string {
	found := []string{}
	for _, r := range result["results"].([]any) {
		found = append(found, r.(map[string]any)["key"].(string))
	}
	return found
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		same(t, "a text", a.do(t, "memory.embed", map[string]any{"text": "valve valve pump"}),
			map[string]any{"embedding": []any{0.01, 1., 2., 0., 0.}, "dimension": int64(5), "model": "topics", "stored": false})
		a.do(t, "ltm.store", map[string]any{"key": "note", "value": map[string]any{"about": "lunch"}, "metadata": map[string]any{"who": "ann"}})
		got := a.do(t, "memory.embed", map[string]any{"key": "note"})
		same(t, "an entry is stored", []any{got["stored"], got["dimension"]}, []any{true, int64(5)})
		found := a.do(t, "memory.vector_search", map[string]any{"query": "lunch", "filter": map[string]any{"who": "ann"}})
		same(t, "found", found["results"].([]any)[0], any(map[string]any{
			"id": "ltm:note", "key": "note", "source": "ltm", "text": "about: lunch", "score": 1., "metadata": map[string]any{"who": "ann"},
		}))
		same(t, "a batch", a.do(t, "memory.embed_batch", map[string]any{"texts": []any{"pump", "valve"}, "model": "m"}), map[string]any{
			"embeddings": []any{[]any{0.01, 1., 0., 0., 0.}, []any{0.01, 0., 1., 0., 0.}},
			"count":      int64(2), "dimension": int64(5), "model": "m",
		})
		same(t, "an empty batch", a.do(t, "memory.embed_batch", map[string]any{"texts": []any{}}),
			map[string]any{"embeddings": []any{}, "count": int64(0), "dimension": int64(0), "model": ""})
		for _, params := range []map[string]any{{}, {"text": "a", "key": "b"}} {
			a.fails(t, tea.ValidationError, "memory.embed", params)
		}
		a.fails(t, tea.NotFound, "memory.embed", map[string]any{"key": "none"})
		a.do(t, "ltm.store", map[string]any{"key": "empty", "value": ""})
		a.fails(t, tea.ValidationError, "memory.embed", map[string]any{"key": "empty"})
		if message := a.fails(t, tea.ValidationError, "memory.embed", map[string]any{"key": "note", "model": "longer"}); !strings.Contains(message, "one embedding model") {
			t.Error(message)
		}
	})
}

func TestEmbedWithoutAModel(t *testing.T) {
	t.Parallel()
	a := linkedAgent(t, &teatest.Host{})
	a.do(t, "ltm.store", map[string]any{"key": "k", "value": "pump"})
	for action, params := range map[string]map[string]any{
		"memory.embed": {"text": "a"}, "memory.embed_batch": {"texts": []any{"a"}}, "memory.backfill_embeddings": {}, "memory.vector_search": {"query": "a"},
	} {
		if message := a.fails(t, tea.DependencyMissing, action, params); !strings.Contains(message, "embedding.create") {
			t.Error(message)
		}
	}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		var items []any
		for i := range 25 {
			items = append(items, map[string]any{"key": fmt.Sprintf("n/%02d", i), "value": topics[i%4]})
		}
		items = append(items, map[string]any{"key": "other", "value": "pump"}, map[string]any{"key": "n/empty", "value": map[string]any{"a": nil}},
			map[string]any{"key": "n/long", "value": strings.Repeat("valve ", 20_000)})
		a.do(t, "ltm.store", map[string]any{"items": items})

		fill := func(embedded, skipped, failed, remaining int, params map[string]any) {
			t.Helper()
			same(t, "backfill", a.do(t, "memory.backfill_embeddings", params), map[string]any{
				"embedded": int64(embedded), "skipped": int64(skipped), "failed": int64(failed), "remaining": int64(remaining),
			})
		}
		fill(10, 0, 0, 17, map[string]any{"prefix": "n/", "limit": 10, "batch_size": 4})
		fill(16, 11, 0, 0, map[string]any{"prefix": "n/", "batch_size": 7})
		fill(1, 27, 0, 0, nil)
		fill(0, 28, 0, 0, nil)
		before := len(a.host.Recorded().Invoked)
		fill(0, 28, 0, 0, map[string]any{"model": "topics"})
		same(t, "calls of the model for nothing", len(a.host.Recorded().Invoked)-before, 0)

		a.do(t, "ltm.store", map[string]any{"key": "n/00", "value": "lunch"})
		fill(1, 27, 0, 0, nil)
		a.do(t, "ltm.store", map[string]any{"key": "n/01", "value": topics[1], "metadata": map[string]any{"new": true}})
		fill(0, 28, 0, 0, nil)
		same(t, "new metadata", keys(a.do(t, "memory.vector_search", map[string]any{"query": "valve", "filter": map[string]any{"new": true}})), []string{"n/01"})
		fill(27, 1, 0, 0, map[string]any{"model": "topics 2"})
	})
}

func TestBackfillContinuesAfterRefusedTexts(t *testing.T) {
	t.Parallel()
	a := linkedAgent(t, embedder())
	for i := range 10 {
		a.do(t, "ltm.store", map[string]any{"key": fmt.Sprint(i), "value": []string{"pump", "refuse me"}[i%2]})
	}
	for _, batch := range []int{1, 3, 100} {
		params := map[string]any{"batch_size": batch, "collection": fmt.Sprint("c", batch)}
		got := a.do(t, "memory.backfill_embeddings", params)
		same(t, "backfill", []any{got["embedded"], got["failed"]}, []any{int64(5), int64(5)})
	}
	same(t, "warnings", len(a.host.Recorded().Logs), 15)
	for i := range 40 {
		a.do(t, "ltm.store", map[string]any{"key": fmt.Sprintf("wrong/%d", i), "value": "refuse me"})
	}
	a.fails(t, tea.ValidationError, "memory.backfill_embeddings", map[string]any{"prefix": "wrong/"})
}

func TestBackfillIsResumed(t *testing.T) {
	t.Parallel()
	host := embedder()
	works := host.Actions["embedding.create"]
	var calls atomic.Int64
	host.Actions["embedding.create"] = func(ctx context.Context, params any) (any, error) {
		if calls.Add(1) == 3 {
			return nil, tea.Errorf(tea.ConnectionError, "the server is gone")
		}
		return works(ctx, params)
	}
	a := linkedAgent(t, host)
	for i := range 20 {
		a.do(t, "ltm.store", map[string]any{"key": fmt.Sprint(i), "value": "pump"})
	}
	a.fails(t, tea.ConnectionError, "memory.backfill_embeddings", map[string]any{"batch_size": 5})
	got := a.do(t, "memory.backfill_embeddings", map[string]any{"batch_size": 5})
	same(t, "the rest", []any{got["embedded"], got["skipped"]}, []any{int64(10), int64(10)})
}

func TestVectorSearchFindsNothingStale(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		for key, text := range map[string]string{"a": "pump", "b": "pump pump valve", "c": "pump valve", "d": "valve", "e": "pump lunch", "f": "pump weather"} {
			a.do(t, "ltm.store", map[string]any{"key": key, "value": text, "metadata": map[string]any{"kind": "note"}})
		}
		a.do(t, "memory.backfill_embeddings", nil)
		search := func(params map[string]any) []string {
			t.Helper()
			return keys(a.do(t, "memory.vector_search", params))
		}
		same(t, "all", search(map[string]any{"query": "pump", "k": 3}), []string{"a", "b", "c"})
		same(t, "limit", search(map[string]any{"query": "pump", "limit": 1}), []string{"a"})
		same(t, "threshold", search(map[string]any{"query": "pump", "threshold": 0.8}), []string{"a", "b"})
		same(t, "by embedding", keys(a.do(t, "memory.vector_search_by_embedding", map[string]any{"embedding": []any{0, 0, 1, 0, 0}, "k": 2})), []string{"d", "c"})

		a.do(t, "ltm.delete", map[string]any{"key": "a"})
		a.do(t, "ltm.store", map[string]any{"key": "b", "value": "something else"})
		a.do(t, "ltm.store", map[string]any{"key": "c", "value": "pump valve", "metadata": map[string]any{"kind": "other"}})
		a.do(t, "ltm.store", map[string]any{"key": "e", "value": "pump lunch", "ttl": 1e-6})
		same(t, "what is left", search(map[string]any{"query": "pump", "k": 2}), []string{"c", "f"})
		same(t, "one more", search(map[string]any{"query": "pump", "k": 10}), []string{"c", "f", "d"})
		same(t, "the filter sees today's metadata", search(map[string]any{"query": "pump", "k": 10, "filter": map[string]any{"kind": "note"}}), []string{"f", "d"})
		same(t, "no such collection", search(map[string]any{"query": "pump", "collection": "none"}), []string{})
		got := a.do(t, "memory.backfill_embeddings", nil)
		same(t, "embedded again", got["embedded"], int64(1))

		a.do(t, "vector.store", map[string]any{"texts": []any{"pump"}, "ids": []any{"own"}})
		same(t, "other vectors", search(map[string]any{"query": "pump", "collection": "default"}), []string{"own"})
		a.fails(t, tea.ValidationError, "memory.vector_search", map[string]any{"query": "a", "k": 1, "limit": 2})
		a.fails(t, tea.ValidationError, "memory.vector_search_by_embedding", map[string]any{"embedding": []any{1, 2}})
		a.fails(t, tea.ValidationError, "memory.vector_search_by_embedding", map[string]any{"embedding": []any{}})
		a.fails(t, tea.ValidationError, "memory.vector_search", map[string]any{"query": ""})
	})
}

func TestBackfillOfFiles(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		a.do(t, "session.create", map[string]any{"session_id": "s"})
		for path, text := range map[string]string{"notes/a.md": "pump", "notes/b.md": "valve", "sessions/s/c.md": "pump lunch"} {
			a.do(t, "memory.file_store", map[string]any{"path": path, "content": text, "metadata": map[string]any{"of": path}})
		}
		a.do(t, "memory.file_store", map[string]any{"path": "notes/picture.png", "content_base64": "iVBORw0KGgo="})
		same(t, "embedded", a.do(t, "memory.backfill_embeddings", nil)["embedded"], int64(3))
		search := func() []string {
			t.Helper()
			return keys(a.do(t, "memory.vector_search", map[string]any{"query": "pump", "threshold": 0.5}))
		}
		same(t, "found", search(), []string{"notes/a.md", "sessions/s/c.md"})
		first := a.do(t, "memory.vector_search", map[string]any{"query": "pump", "k": 1, "filter": map[string]any{"of": "notes/a.md"}})["results"].([]any)[0].(map[string]any)
		same(t, "source", []any{first["source"], first["text"]}, []any{"file", "pump"})
		a.do(t, "session.archive", map[string]any{"session_id": "s"})
		a.do(t, "memory.file_store", map[string]any{"path": "notes/a.md", "content": "lunch"})
		same(t, "changed and archived", search(), []string{})
		a.do(t, "session.restore", map[string]any{"session_id": "s"})
		same(t, "embedded again", a.do(t, "memory.backfill_embeddings", nil)["embedded"], int64(2))
	})
}

// Entries of one namespace were found from another.
func TestVectorSearchStaysInItsNamespace(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		a.do(t, "ltm.store", map[string]any{"key": "a", "value": "pump"})
		for _, space := range []string{"", "ada", "bob"} {
			a.do(t, "ltm.store", map[string]any{"key": "of " + space, "value": "pump valve", "namespace": space})
			a.do(t, "memory.backfill_embeddings", map[string]any{"namespace": space})
		}
		for space, want := range map[string][]string{"": {"a", "of "}, "ada": {"of ada"}, "bob": {"of bob"}, "none": {}} {
			params := map[string]any{"query": "pump", "k": 10, "namespace": space}
			same(t, "in "+space, keys(a.do(t, "memory.vector_search", params)), want)
			params = map[string]any{"embedding": []any{0, 0, 1, 0, 0}, "k": 1, "namespace": space}
			got := keys(a.do(t, "memory.vector_search_by_embedding", params))
			same(t, "by embedding in "+space, len(got), min(1, len(want)))
			if len(got) == 1 && !slices.Contains(want, got[0]) {
				t.Errorf("in %q: got %q of another namespace", space, got[0])
			}
		}
		a.do(t, "vector.store", map[string]any{"texts": []any{"pump"}, "ids": []any{"own"}, "collection": "ltm"})
		same(t, "other vectors", len(keys(a.do(t, "memory.vector_search", map[string]any{"query": "pump", "k": 10}))), 3)
		same(t, "and not in a namespace", keys(a.do(t, "memory.vector_search", map[string]any{"query": "pump", "k": 10, "namespace": "ada"})), []string{"of ada"})
	})
}
