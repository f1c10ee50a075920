package memory_test

import (
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestAnEntryIsStoredWithItsVector(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		vector := func(x, y float64) []any { return []any{x, y} }
		a.do(t, "ltm.store", map[string]any{"key": "pump", "value": "The pump leaks.", "embedding": vector(1, 0), "metadata": map[string]any{"n": 1}})
		a.do(t, "ltm.store", map[string]any{"embedding_model": "m", "items": []any{
			map[string]any{"key": "valve", "value": map[string]any{"state": "open"}, "embedding": vector(0, 1)},
			map[string]any{"key": "none", "value": "No vector."},
		}})
		a.do(t, "ltm.store", map[string]any{"namespace": "acme", "key": "pump", "value": "Another pump.", "embedding": vector(1, 1), "collection": "ltm"})
		search := func(more map[string]any) []string {
			t.Helper()
			return keys(a.do(t, "ltm.search", with(map[string]any{"mode": "vector", "embedding": vector(1, 0.1)}, more)))
		}
		same(t, "by vector", search(nil), []string{"pump", "valve"})
		same(t, "filtered", search(map[string]any{"metadata_filter": map[string]any{"n": 1}}), []string{"pump"})
		same(t, "of a namespace", search(map[string]any{"namespace": "acme"}), []string{"pump"})
		same(t, "hybrid", search(map[string]any{"mode": "hybrid", "query": "vector"}), []string{"none", "pump", "valve"})

		// Another value has another vector, or none.
		a.do(t, "ltm.store", map[string]any{"key": "pump", "value": "It is repaired."})
		same(t, "without a vector of the new value", search(nil), []string{"valve"})
		a.do(t, "ltm.store", map[string]any{"key": "pump", "value": "It is repaired.", "embedding": vector(1, 0)})
		same(t, "with one", search(nil), []string{"pump", "valve"})

		// An embedding that cannot be stored leaves no entry behind.
		for _, embedding := range [][]any{{1, 0, 0}, {0, 0}} {
			a.fails(t, tea.ValidationError, "ltm.store", map[string]any{"key": "refused", "value": 1, "embedding": embedding})
		}
		a.fails(t, tea.ValidationError, "ltm.store", map[string]any{"items": []any{}, "embedding": vector(1, 0)})
		same(t, "refused", a.do(t, "ltm.retrieve", map[string]any{"key": "refused"})["found"], any(false))
	})
}

// Metadata with the names that other programs give the time to expiry were stored,
// and the entry stayed.
func TestAnEntryExpiresByTheTimesInItsMetadata(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		for name, metadata := range map[string]map[string]any{
			"ttl": {"_cache_ttl": 1e-6}, "time": {"_cache_expires_at": "2020-01-01T00:00:00Z"}, "seconds": {"_cache_expires_at": 1.5e9}, "both": {"_cache_ttl": 3600, "_cache_expires_at": 1.5e9},
		} {
			a.do(t, "ltm.store", map[string]any{"key": name, "value": 1, "metadata": metadata})
			same(t, name, a.do(t, "ltm.retrieve", map[string]any{"key": name})["found"], any(false))
		}
		a.do(t, "ltm.store", map[string]any{"key": "later", "value": 1, "metadata": map[string]any{"_cache_ttl": 3600}})
		a.do(t, "ltm.store", map[string]any{"key": "own", "value": 1, "ttl": 3600, "metadata": map[string]any{"_cache_ttl": 1e-6}})
		for _, listed := range a.do(t, "ltm.list", nil)["entries"].([]any) {
			if entry := listed.(map[string]any); entry["expires_at"] == nil {
				t.Errorf("%v does not expire", entry["key"])
			}
		}
		same(t, "live", a.do(t, "ltm.list", nil)["count"], any(int64(2)))
		for _, metadata := range []map[string]any{{"_cache_ttl": "soon"}, {"_cache_ttl": -1}, {"_cache_expires_at": "tomorrow"}, {"_cache_expires_at": true}} {
			a.fails(t, tea.ValidationError, "ltm.store", map[string]any{"key": "x", "value": 1, "metadata": metadata})
		}
	})
}
