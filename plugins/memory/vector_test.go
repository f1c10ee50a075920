package memory_test

import (
	"testing"
)

// TestEmptyListsOfVectorStoreAreNone: a template makes an empty list where
// there is nothing to say.
func TestEmptyListsOfVectorStoreAreNone(t *testing.T) {
	t.Parallel()
	linkedAgents(t, alone, func(t *testing.T, a *agent) {
		vectors := []any{[]any{1, 0}}
		a.do(t, "vector.store", map[string]any{"texts": []any{"a"}, "embeddings": vectors, "ids": []any{}, "metadata": []any{}})
		a.do(t, "vector.store", map[string]any{"texts": []any{}, "embeddings": vectors, "ids": []any{"b"}})
		same(t, "count", a.do(t, "vector.query", map[string]any{"embedding": []any{1, 0}})["count"], int64(2))
	})
}
