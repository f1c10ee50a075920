package memory_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// stores stores a record of each kind that DuckDB has an index for.
func stores(o *opened, name string) {
	o.must("memory.file_store", map[string]any{"path": name + ".txt", "content": "content of " + name})
	o.must("session.create", map[string]any{"session_id": name})
	o.must("ltm.store", map[string]any{"key": name, "value": "value of " + name})
	o.must("vector.store", map[string]any{"texts": []any{"text of " + name}, "ids": []any{name}, "embeddings": []any{[]any{1, 0}}})
}

// holds checks that a record of each kind is there, and can be replaced and deleted.
func holds(t *testing.T, o *opened, name string) {
	t.Helper()
	for _, c := range []struct {
		action string
		params map[string]any
		field  string
		want   any
	}{
		{"memory.file_retrieve", map[string]any{"path": name + ".txt"}, "content", "content of " + name},
		{"session.get", map[string]any{"session_id": name}, "status", "active"},
		{"ltm.retrieve", map[string]any{"key": name}, "value", "value of " + name},
		{"memory.file_store", map[string]any{"path": name + ".txt", "content": "new"}, "success", true},
		{"session.archive", map[string]any{"session_id": name}, "success", true},
		{"ltm.store", map[string]any{"key": name, "value": "new"}, "success", true},
		{"vector.store", map[string]any{"texts": []any{"new"}, "ids": []any{name}, "embeddings": []any{[]any{0, 1}}}, "success", true},
		{"memory.file_delete", map[string]any{"path": name + ".txt"}, "success", true},
		{"ltm.delete", map[string]any{"key": name}, "deleted", true},
		{"vector.delete", map[string]any{"ids": []any{name}}, "deleted", int64(1)},
	} {
		got, err := o.call(c.action, c.params)
		if err != nil || got[c.field] != c.want {
			t.Errorf("%s of %s: %s = %v (%v), want %v", c.action, name, c.field, got[c.field], err, c.want)
		}
	}
}

// killed returns a copy of the folder of an open memory: what a kill leaves.
func killed(t *testing.T, dir string) string {
	t.Helper()
	left := filepath.Join(t.TempDir(), "memory")
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return left
}

// idle are ways to open and close a memory without using its records.
var idle = map[string]func(o *opened){
	"nothing":   func(*opened) {},
	"inspect":   func(o *opened) { o.must("memory.inspect", nil) },
	"unrelated": func(o *opened) { o.must("catalog.register_table", map[string]any{"name": "other", "format": "csv"}) },
	"another":   func(o *opened) { o.must("ltm.store", map[string]any{"key": "another", "value": 1}) },
	"backup":    func(o *opened) { o.must("memory.export", map[string]any{"path": rand.Text() + ".teamem"}) },
}

func TestRecordsOfAKilledProcessSurviveAnOpenWithoutUse(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it kills processes again and again")
	eachEngine(t, func(t *testing.T, engine string) {
		t.Parallel()
		for step, use := range idle {
			for _, times := range []int{1, 2} {
				t.Run(step, func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					o := mustOpen(t, map[string]any{"path": dir, "engine": engine})
					stores(o, "early")
					o.close()
					o = mustOpen(t, map[string]any{"path": dir, "engine": engine})
					stores(o, "late")
					left, archives := killed(t, dir), t.TempDir()
					o.close()
					for range times {
						o := mustOpen(t, map[string]any{"path": left, "engine": engine, "warmup": true, "archives": archives})
						use(o)
						o.close()
					}
					o = mustOpen(t, map[string]any{"path": left, "engine": engine})
					defer o.close()
					holds(t, o, "early")
					holds(t, o, "late")
				})
			}
		}
	})
}

func TestAnImportThatWasKilledContinuesAfterAnOpenWithoutUse(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it kills processes again and again")
	eachEngine(t, func(t *testing.T, engine string) {
		t.Parallel()
		const files = 300
		dir, archives := t.TempDir(), t.TempDir()
		settings := func(path string) map[string]any {
			return map[string]any{"path": path, "engine": engine, "archives": archives, "warmup": true}
		}
		from := mustOpen(t, settings(t.TempDir()))
		for i := range files {
			from.must("memory.file_store", map[string]any{"path": fmt.Sprintf("%d.txt", i), "content": fmt.Sprint("content ", i)})
		}
		from.must("memory.export", map[string]any{"path": "all"})
		from.close()

		o := mustOpen(t, settings(dir))
		o.must("ltm.store", map[string]any{"key": "early", "value": 1})
		o.close()
		o = mustOpen(t, settings(dir))
		imported := make(chan error, 1)
		go func() {
			_, err := o.call("memory.import", map[string]any{"path": "all"})
			imported <- err
		}()
		for len(o.must("memory.file_list", nil)["files"].([]any)) == 0 { // until it has begun
		}
		left := killed(t, dir)
		if err := <-imported; err != nil {
			t.Fatal(err)
		}
		o.close()
		mustOpen(t, settings(left)).close()
		o = mustOpen(t, settings(left))
		defer o.close()
		o.must("memory.import", map[string]any{"path": "all"})
		for i := range files {
			same(t, "content", o.must("memory.file_retrieve", map[string]any{"path": fmt.Sprintf("%d.txt", i)})["content"], any(fmt.Sprint("content ", i)))
		}
	})
}
