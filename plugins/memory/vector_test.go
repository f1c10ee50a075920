package memory_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// TestEmptyListsOfVectorStoreAreNone: a template makes an empty list where
// there is nothing to say.
func TestEmptyListsOfVectorStoreAreNone(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		vectors := []any{[]any{1, 0}}
		a.do(t, "vector.store", map[string]any{"texts": []any{"a"}, "embeddings": vectors, "ids": []any{}, "metadata": []any{}})
		a.do(t, "vector.store", map[string]any{"texts": []any{}, "embeddings": vectors, "ids": []any{"b"}})
		same(t, "count", a.do(t, "vector.query", map[string]any{"embedding": []any{1, 0}})["count"], int64(2))
	})
}

func TestVectorStoreRefusesWhatItWouldLose(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		for name, test := range map[string]struct {
			params map[string]any
			says   string
		}{
			"null in an embedding": {map[string]any{"ids": []any{"a"}, "embeddings": []any{[]any{1, nil}}}, "null"},
			"a text in one":        {map[string]any{"ids": []any{"a"}, "embeddings": []any{[]any{1, "2"}}}, "embeddings"},
			"an empty embedding":   {map[string]any{"ids": []any{"a"}, "embeddings": []any{[]any{}}}, "1 to"},
			"a number too large":   {map[string]any{"ids": []any{"a"}, "embeddings": []any{[]any{1, 1e300}}}, "not finite"},
			"zeros":                {map[string]any{"ids": []any{"a"}, "embeddings": []any{[]any{0, 0}}}, "all zeros"},
			"equal ids":            {map[string]any{"ids": []any{"a", "a"}, "embeddings": []any{[]any{1, 0}, []any{0, 1}}}, `duplicate id "a"`},
			"bytes as id":          {map[string]any{"ids": []any{"a\xff"}, "embeddings": []any{[]any{1, 0}}}, "not valid UTF-8"},
			"equal texts":          {map[string]any{"texts": []any{"x", "x"}, "embeddings": []any{[]any{1, 0}, []any{1, 0}}, "metadata": []any{map[string]any{"n": 1}, map[string]any{"n": 2}}}, "pass ids"},
		} {
			if message := a.fails(t, tea.ValidationError, "vector.store", test.params); !strings.Contains(message, test.says) {
				t.Errorf("%s: %s, want %q", name, message, test.says)
			}
		}
		same(t, "nothing was stored", a.do(t, "vector.list", map[string]any{})["count"], int64(0))
		a.do(t, "vector.store", map[string]any{"ids": []any{"a"}, "embeddings": []any{[]any{1, 0}}})
		for _, embedding := range [][]any{{1, nil}, {0, 0}, {1}} {
			a.fails(t, tea.ValidationError, "vector.query", map[string]any{"embedding": embedding})
		}
		for _, action := range []string{"ltm.store", "memory.store"} {
			a.fails(t, tea.ValidationError, action, map[string]any{"key": "k\xff", "value": 1})
		}
	})
}

func TestEqualTextsAreOneItem(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		r := a.do(t, "vector.store", map[string]any{"texts": []any{"x", "y", "x"}, "embeddings": []any{[]any{1, 0}, []any{0, 1}, []any{1, 0}}})
		ids := r["ids"].([]any)
		if r["stored"] != int64(2) || len(ids) != 3 || ids[0] != ids[2] {
			t.Errorf("%v", r)
		}
	})
}

func TestEmptyListsStoreNothing(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		r := a.do(t, "vector.store", map[string]any{"texts": []any{}})
		same(t, "vectors stored", pick(r, "stored", "dimension"), []any{int64(0), int64(0)})
		r = a.do(t, "ltm.store", map[string]any{"items": []any{}})
		same(t, "entries stored", pick(r, "stored", "created", "deduplicated", "count"), []any{false, false, false, int64(0)})
		a.fails(t, tea.ValidationError, "vector.store", map[string]any{})
	})
}

func TestVectorsAreListedDeletedAndDropped(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		var ids, texts, embeddings, metadata []any
		for i := range 250 {
			ids, texts = append(ids, fmt.Sprintf("%03d", i)), append(texts, fmt.Sprint("text ", i))
			embeddings, metadata = append(embeddings, []any{1, i}), append(metadata, map[string]any{"n": i})
		}
		a.do(t, "vector.store", map[string]any{"ids": ids, "texts": texts, "embeddings": embeddings, "metadata": metadata, "collection": "c"})
		list := func(filter map[string]any, limit int) (found []any, pages int) {
			cursor := ""
			for {
				r := a.do(t, "vector.list", map[string]any{"collection": "c", "filter": filter, "limit": limit, "cursor": cursor})
				for _, item := range r["items"].([]any) {
					found = append(found, item.(map[string]any)["id"])
				}
				pages++
				if cursor = r["next_cursor"].(string); cursor == "" {
					return found, pages
				}
			}
		}
		found, pages := list(nil, 100)
		same(t, "all", found, ids)
		same(t, "pages", pages, 3)
		found, _ = list(map[string]any{"n": map[string]any{"gte": 20, "lt": 240}}, 7)
		same(t, "a range", found, ids[20:240])
		first := a.do(t, "vector.list", map[string]any{"collection": "c", "limit": 1, "include_embeddings": true})["items"].([]any)[0]
		same(t, "an item", first, map[string]any{"id": "000", "text": "text 0", "metadata": map[string]any{"n": int64(0)}, "embedding": []any{1.0, 0.0}})

		r := a.do(t, "vector.query", map[string]any{"collection": "c", "embedding": []any{1, 0}, "k": 2, "filter": map[string]any{"n": map[string]any{"gt": 3}}})
		same(t, "nearest of a range", r["results"].([]any)[0].(map[string]any)["id"], "004")
		r = a.do(t, "vector.delete", map[string]any{"collection": "c", "ids": []any{"004", "none", "005"}})
		same(t, "deleted", r["deleted"], int64(2))
		a.do(t, "vector.store", map[string]any{"collection": "c", "ids": []any{"006"}, "embeddings": []any{[]any{1, 0}}, "metadata": []any{map[string]any{"n": json.Number("1")}}})
		r = a.do(t, "vector.query", map[string]any{"collection": "c", "embedding": []any{1, 0}, "k": 2, "filter": map[string]any{"n": map[string]any{"gt": 3}}})
		same(t, "a filter sees changes", r["results"].([]any)[0].(map[string]any)["id"], "007")
		r = a.do(t, "vector.drop", map[string]any{"collection": "c"})
		same(t, "dropped", pick(r, "dropped", "deleted"), []any{true, int64(248)})
		same(t, "dropped again", a.do(t, "vector.drop", map[string]any{"collection": "c"})["dropped"], false)
		found, _ = list(nil, 10)
		same(t, "left", len(found), 0)
	})
}

// TestADamagedVectorDoesNotHideOthers changes rows behind the memory's back.
func TestADamagedVectorDoesNotHideOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := map[string]any{"path": dir, "engine": "sqlite"}
	o := mustOpen(t, settings)
	o.must("vector.store", map[string]any{
		"ids": []any{"a", "b", "c", "d"}, "texts": []any{"a", "b", "c", "d"},
		"embeddings": []any{[]any{1, 0, 0}, []any{0.9, 0.1, 0}, []any{0.8, 0.2, 0}, []any{0.7, 0.3, 0}},
		"metadata":   []any{map[string]any{"n": 1}, map[string]any{"n": 1}, map[string]any{"n": 1}, map[string]any{"n": 1}},
	})
	o.close()
	db, err := sql.Open("sqlite", filepath.Join(dir, "memory.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{`UPDATE vectors SET metadata = '{' WHERE name = 'b'`, `UPDATE vectors SET embedding = substr(embedding, 1, 7) WHERE name = 'c'`} {
		if _, err := db.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Close(), os.RemoveAll(filepath.Join(dir, "vectors"))); err != nil {
		t.Fatal(err)
	}
	o = mustOpen(t, settings)
	defer o.close()
	seen := func(list any) (all []string) {
		for _, item := range list.([]any) {
			item := item.(map[string]any)
			all = append(all, fmt.Sprint(item["id"], item["damaged"]))
		}
		return all
	}
	query := map[string]any{"embedding": []any{1, 0, 0}, "k": 4}
	same(t, "found", seen(o.must("vector.query", query)["results"]), []string{"a<nil>", "btrue", "d<nil>"})
	same(t, "listed", seen(o.must("vector.list", nil)["items"]), []string{"a<nil>", "btrue", "c<nil>", "d<nil>"})
	query["filter"] = map[string]any{"n": 1}
	same(t, "filtered", seen(o.must("vector.query", query)["results"]), []string{"a<nil>", "d<nil>"})
}
