package memory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

const (
	stormWriters = 16
	stormReaders = 16
	stormRounds  = 4
)

// TestEverythingAtOnce lets writers and readers use all actions together. Each
// writer changes its two of everything in one call, so that readers know what
// must never be seen: one of two.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		t.Parallel()
		settings := map[string]any{"path": t.TempDir(), "engine": engine}
		s := &storm{opened: mustOpen(t, settings)}
		s.must("data.create_table", map[string]any{"name": "ledger", "schema": map[string]any{"id": "string", "amount": "int"}, "primary_key": "id"})
		s.must("catalog.register_table", map[string]any{"name": "elsewhere"})
		var writers, readers sync.WaitGroup
		turns := make(chan int)
		for range stormReaders {
			readers.Go(func() {
				for i := range turns {
					s.read(i)
				}
			})
		}
		for w := range stormWriters {
			writers.Go(func() {
				for round := 1; round <= stormRounds && !t.Failed(); round++ {
					turns <- round*stormWriters + w*3
					s.write(w, round)
				}
			})
		}
		writers.Wait()
		close(turns)
		readers.Wait()
		s.end()
		s.close()
		s.opened = mustOpen(t, settings)
		s.end()
		s.close()
	})
}

type storm struct{ *opened }

// large is a text that belongs to a number; every third one is a blob.
func large(n int) string {
	return fmt.Sprintf("storm word%dx %s", n, strings.Repeat("rain ", n%3/2*400))
}

func (s *storm) write(w, round int) {
	n := round*stormWriters + w
	one, two := fmt.Sprintf("pair/%d/a", w), fmt.Sprintf("pair/%d/b", w)
	s.must("ltm.store", map[string]any{"items": []any{
		map[string]any{"key": one, "value": map[string]any{"n": n, "text": large(n)}}, map[string]any{"key": two, "value": map[string]any{"n": n, "text": large(n)}},
	}})
	s.equal("own value", s.must("ltm.retrieve", map[string]any{"key": two})["value"].(map[string]any)["n"], int64(n))
	s.equal("own word", s.must("ltm.search", map[string]any{"query": fmt.Sprintf("word%dx", n)})["count"], int64(2))
	s.equal("the word before", s.must("ltm.search", map[string]any{"query": fmt.Sprintf("word%dx", n-stormWriters)})["count"], int64(0))
	s.must("ltm.store", map[string]any{"key": "shared", "value": n})
	s.must("ltm.store", map[string]any{"key": fmt.Sprintf("once/%d/%d", w, round), "value": "once"})
	if round%2 == 0 {
		s.equal("deleted", s.must("ltm.delete", map[string]any{"key": fmt.Sprintf("once/%d/%d", w, round)})["deleted"], true)
	}
	angle := []float64{float64(n), 1}
	s.must("vector.store", map[string]any{"ids": []string{one, two}, "embeddings": [][]float64{angle, angle}, "texts": []string{fmt.Sprint(n), fmt.Sprint(n)}, "metadata": []any{map[string]any{"w": w}, map[string]any{"w": w}}})
	s.must("data.insert", map[string]any{"table": "ledger", "on_conflict": "replace", "rows": []any{map[string]any{"id": one, "amount": n}, map[string]any{"id": two, "amount": -n}}})
	s.must("memory.store", map[string]any{"key": one, "value": n})
	s.equal("short-term value", s.must("memory.retrieve", map[string]any{"key": one})["value"], int64(n))
	s.must("catalog.track_file", map[string]any{"table": "elsewhere", "files": []any{map[string]any{"path": one, "size": n}, map[string]any{"path": two, "size": n}}})
	s.session(w, round, n)
	if round%3 == 0 && w%4 == 0 {
		s.must("data.consolidate", map[string]any{"table": "ledger"})
		s.must("catalog.create_snapshot", map[string]any{"table": "elsewhere"})
	}
}

func (s *storm) session(w, round, n int) {
	id := fmt.Sprintf("s%d", w)
	if round == 1 {
		s.must("session.create", map[string]any{"session_id": id})
	}
	s.must("memory.file_store", map[string]any{"path": "note.md", "session_id": id, "content": large(n)})
	s.must("session.archive", map[string]any{"session_id": id})
	if _, err := s.call("memory.file_store", map[string]any{"path": "late.md", "session_id": id, "content": "late"}); err == nil {
		s.t.Error("an archived session takes a file")
	}
	got := s.must("memory.file_retrieve", map[string]any{"path": "note.md", "session_id": id})
	s.equal("archived content", got["content"], large(n))
	s.equal("archived", got["archived"], true)
	s.must("session.restore", map[string]any{"session_id": id})
}

// read looks for one of two.
func (s *storm) read(i int) {
	w := i % stormWriters
	switch i % 7 {
	case 0, 1:
		entries := s.must("ltm.list", map[string]any{"prefix": fmt.Sprintf("pair/%d/", w)})["entries"].([]any)
		if len(entries) == 0 {
			return
		}
		s.equal("entries of a pair", len(entries), 2)
		first, second := entries[0].(map[string]any)["value"].(map[string]any), entries[1].(map[string]any)["value"].(map[string]any)
		// A large value may be read a moment later, when the pair has changed.
		if n := first["n"].(int64); n%3 != 2 && second["n"].(int64)%3 != 2 {
			s.equal("numbers of a pair", second["n"], first["n"])
		}
		s.equal("number and text", strings.HasPrefix(first["text"].(string), fmt.Sprintf("storm word%dx ", first["n"])), true)
	case 2:
		table := s.must("data.query", map[string]any{"sql": "SELECT coalesce(sum(amount), 0) AS total, count(*) % 2 AS odd FROM ledger"})["rows"].([]any)[0].(map[string]any)
		s.equal("sum of the ledger", fmt.Sprint(table["total"], " ", table["odd"]), "0 0")
	case 3:
		for _, r := range s.must("ltm.search", map[string]any{"query": "storm", "limit": 1000})["results"].([]any) {
			value := r.(map[string]any)["value"].(map[string]any)
			s.equal("number and text of a result", strings.HasPrefix(value["text"].(string), fmt.Sprintf("storm word%dx ", value["n"])), true)
		}
	case 4:
		found := s.must("vector.query", map[string]any{"embedding": []float64{1, 0}, "k": 1000, "filter": map[string]any{"w": w}})["results"].([]any)
		if len(found) != 0 && len(found) != 2 {
			s.t.Errorf("%d vectors of a pair", len(found))
		}
	case 5:
		list := s.must("memory.file_list", map[string]any{"include_archived": true, "limit": 1000})["files"].([]any)
		seen := map[string]bool{}
		for _, f := range list {
			id := f.(map[string]any)["session_id"].(string)
			s.equal("a file of "+id+" in two places", seen[id], false)
			seen[id] = true
		}
	case 6:
		files := s.must("catalog.list_files", map[string]any{"table": "elsewhere", "prefix": fmt.Sprintf("pair/%d/", w)})["files"].([]any)
		if len(files) == 2 {
			s.equal("sizes of a pair", files[0].(map[string]any)["size"], files[1].(map[string]any)["size"])
		} else {
			s.equal("files of a pair", len(files), 0)
		}
	}
}

// end checks what must be there when all have done their work.
func (s *storm) end() {
	s.t.Helper()
	s.equal("pairs listed", s.must("ltm.list", map[string]any{"prefix": "pair/", "limit": 1000})["count"], int64(2*stormWriters))
	s.equal("pairs found", s.must("ltm.search", map[string]any{"query": "storm", "limit": 1000})["count"], int64(2*stormWriters))
	s.equal("pairs found by their keys", s.must("ltm.search", map[string]any{"prefix": "pair/", "limit": 1000})["count"], int64(2*stormWriters))
	s.equal("what was stored once", s.must("ltm.list", map[string]any{"prefix": "once/", "limit": 1000})["count"], int64(stormWriters*stormRounds/2))
	s.equal("vectors", s.must("vector.query", map[string]any{"embedding": []float64{1, 0}, "k": 1000})["count"], int64(2*stormWriters))
	s.equal("sessions", s.must("session.list", map[string]any{"status": "active", "limit": 1000})["count"], int64(stormWriters))
	for w := range stormWriters {
		n := stormRounds*stormWriters + w
		got := s.must("ltm.retrieve", map[string]any{"key": fmt.Sprintf("pair/%d/a", w)})["value"]
		s.equal("the last value", got.(map[string]any)["n"], int64(n))
		s.equal("the last file", s.must("memory.file_retrieve", map[string]any{"path": "note.md", "session_id": fmt.Sprintf("s%d", w)})["content"], large(n))
	}
	rows := s.must("data.query", map[string]any{"sql": "SELECT count(*) AS n, sum(amount) AS total, max(amount) AS top FROM ledger"})["rows"]
	raw, err := json.Marshal(rows)
	if err != nil {
		s.t.Fatal(err)
	}
	s.equal("the ledger", string(raw), fmt.Sprintf(`[{"n":%d,"top":%d,"total":0}]`, 2*stormWriters, stormRounds*stormWriters+stormWriters-1))
}
