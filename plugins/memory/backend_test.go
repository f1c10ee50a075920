package memory_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// elsewhere is a backend of a third party: SQLite in the folder of its URL.
func elsewhere() memory.Option {
	return memory.WithBackend(store.Backend{Name: "elsewhere", Open: func(ctx context.Context, c store.Config) (*store.Stores, error) {
		u, err := store.ParseURL("memory.url", c.URL, "elsewhere")
		if err != nil {
			return nil, err
		}
		var options struct {
			Part string `json:"part,omitempty"`
		}
		if err := c.Decode(&options); err != nil {
			return nil, err
		}
		dir := filepath.Join(filepath.FromSlash(u.Path), options.Part)
		c.Dir = dir
		m, err := devicetest.OpenMemory(ctx, sqlite.Driver{}, c, vector.Options{})
		if err != nil {
			return nil, err
		}
		return &store.Stores{LongTerm: m.LongTerm, Metadata: m.Metadata, Vectors: m.Vectors, Blobs: m.Blobs, Close: m.Stores.Close}, nil
	}})
}

func openWith(t *testing.T, settings map[string]any, options ...memory.Option) (*opened, error) {
	t.Helper()
	all := tea.Settings{}
	for key, v := range settings {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all[key] = raw
	}
	instance, err := teatest.Linked(memory.Bundle(options...)).Open(t.Context(), all)
	if err != nil {
		return nil, err
	}
	return &opened{t: t, instance: instance}, nil
}

func TestABackendOfAThirdPartyServesTheActions(t *testing.T) {
	t.Parallel()
	settings := map[string]any{"engine": "elsewhere", "url": "elsewhere://" + filepath.ToSlash(t.TempDir()), "path": t.TempDir(), "options": map[string]any{"part": "a"}}
	for range 2 { // what the first stores, the second finds
		o, err := openWith(t, map[string]any{"memory": settings}, elsewhere())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("harbor lights ", 200)
		o.must("ltm.store", map[string]any{"key": "k", "value": text})
		same(t, "the value", o.must("ltm.retrieve", map[string]any{"key": "k"})["value"], any(text))
		same(t, "found", o.must("ltm.search", map[string]any{"query": "harbors"})["count"], any(int64(1)))
		o.must("vector.store", map[string]any{"ids": []any{"v"}, "embeddings": []any{[]any{1.0, 0.0}}})
		same(t, "near", o.must("vector.query", map[string]any{"embedding": []any{1.0, 0.1}})["count"], any(int64(1)))
		o.must("memory.file_store", map[string]any{"path": "a.md", "content": "# Harbor\nlights"})
		same(t, "assembled", strings.Contains(o.must("context.assemble", map[string]any{"query": "lights"})["context"].(string), "a.md"), true)
		o.must("catalog.register_table", map[string]any{"name": "t"})
		same(t, "inspected", o.must("memory.inspect", nil)["engine"], any("elsewhere"))
		for action, params := range map[string]map[string]any{
			"data.create_table": {"name": "t", "schema": map[string]any{"a": "int"}},
			"data.query":        {"sql": "SELECT 1"},
			"memory.sql_query":  {"sql": "SELECT 1"},
			"memory.reset":      {"confirm": true},
		} {
			_, err := o.call(action, params)
			if e := tea.AsError(err); e == nil || e.Type != tea.DependencyMissing || !strings.Contains(e.Message, "elsewhere") {
				t.Errorf("%s: %v, want a dependency_missing that names the engine", action, err)
			}
		}
		o.close()
	}
}

func TestTheEngineAndItsAliases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "elsewhere://" + filepath.ToSlash(dir)
	for name, test := range map[string]struct {
		settings map[string]any
		want     tea.ErrorType
		says     string
	}{
		"postgres":            {map[string]any{"memory": map[string]any{"engine": "postgres", "url": "postgres://db/tea"}}, tea.DependencyMissing, "--with memory[postgres]"},
		"turso":               {map[string]any{"ltm_backend": "turso"}, tea.DependencyMissing, "--with memory[libsql]"},
		"blob-sqlite":         {map[string]any{"ltm": map[string]any{"backend": "blob-sqlite"}}, tea.DependencyMissing, "--with memory[bucket]"},
		"unknown":             {map[string]any{"memory": map[string]any{"engine": "oracle"}}, tea.ValidationError, "must be one of"},
		"two engines":         {map[string]any{"memory": map[string]any{"engine": "sqlite"}, "ltm_backend": "postgres"}, tea.ValidationError, "set one of them"},
		"two backends":        {map[string]any{"metadata_backend": "firestore", "vector_backend": "duckdb"}, tea.ValidationError, "settings.vector_backend is duckdb and settings.metadata_backend is firestore"},
		"a backend":           {map[string]any{"query_backend": "postgresql"}, tea.DependencyMissing, "--with memory[postgres]"},
		"other blobs":         {map[string]any{"memory": map[string]any{"path": dir, "blobs": "gs://b/p"}, "blob_backend": "s3"}, tea.ValidationError, "settings.blob_backend is s3, but settings.memory.blobs is gcs storage"},
		"blobs nowhere":       {map[string]any{"memory": map[string]any{"path": dir}, "blob_backend": "s3"}, tea.ValidationError, "settings.memory.blobs is local storage"},
		"no engine":           {map[string]any{"memory": map[string]any{"url": url}}, tea.ValidationError, "settings.memory.url needs settings.memory.engine"},
		"no engine to sync":   {map[string]any{"memory": map[string]any{"sync": map[string]any{"url": url}}}, tea.ValidationError, "settings.memory.sync.url needs settings.memory.sync.engine"},
		"no url":              {map[string]any{"memory": map[string]any{"engine": "elsewhere"}}, tea.ValidationError, "settings.memory.url"},
		"another url":         {map[string]any{"memory": map[string]any{"engine": "elsewhere", "url": "other://x"}}, tea.ValidationError, "elsewhere://"},
		"unknown options":     {map[string]any{"memory": map[string]any{"engine": "elsewhere", "url": url, "options": map[string]any{"prat": "x"}}}, tea.ValidationError, "prat"},
		"blobs of s3":         {map[string]any{"memory": map[string]any{"engine": "elsewhere", "url": url, "blobs": "s3://b/p"}}, tea.DependencyMissing, "--with memory[s3]"},
		"blobs of ftp":        {map[string]any{"memory": map[string]any{"engine": "elsewhere", "url": url, "blobs": "ftp://b/p"}}, tea.ValidationError, "settings.memory.blobs"},
		"ltm_backend, a path": {map[string]any{"memory": map[string]any{"path": dir}, "ltm_backend": "sqlite"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := openWith(t, test.settings, elsewhere())
			if err == nil {
				o.close()
			}
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := tea.AsError(err); e == nil || e.Type != test.want || !strings.Contains(e.Message, test.says) {
				t.Errorf("%v, want a %s that says %q", err, test.want, test.says)
			}
		})
	}
}

// A backend without a required part is an error that names it, not a panic.
func TestABackendThatIsNotComplete(t *testing.T) {
	t.Parallel()
	for want, stores := range map[string]*store.Stores{
		"has opened no stores": nil,
		"Stores.LongTerm":      {Close: func() error { return nil }},
	} {
		option := memory.WithBackend(store.Backend{Name: "partly", Open: func(context.Context, store.Config) (*store.Stores, error) { return stores, nil }})
		o, err := openWith(t, map[string]any{"memory": map[string]any{"engine": "partly", "url": "partly://x", "path": t.TempDir()}}, option)
		if err == nil {
			_, err = o.call("ltm.retrieve", map[string]any{"key": "k"})
			o.close()
		}
		if typeOf(err) != tea.InternalError || !contains(err, want) {
			t.Errorf("%v, want an internal_error with %q", err, want)
		}
	}
}

// A process that is killed leaves no folder if it has not needed one.
func TestABackendHasATemporaryFolderOnlyForTheTextsOfFiles(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	folders := func(when string, want int) {
		t.Helper()
		entries, err := os.ReadDir(tmp)
		if err != nil || len(entries) != want {
			t.Errorf("%s: %d folders (%v), want %d", when, len(entries), err, want)
		}
	}
	o, err := openWith(t, map[string]any{"memory": map[string]any{"engine": "elsewhere", "url": "elsewhere://" + filepath.ToSlash(t.TempDir()), "path": t.TempDir()}}, elsewhere())
	if err != nil {
		t.Fatal(err)
	}
	o.must("ltm.store", map[string]any{"key": "k", "value": "v"})
	o.must("memory.file_store", map[string]any{"path": "a.md", "content": "# Harbor\nlights"})
	folders("after a write", 0)
	o.must("context.assemble", map[string]any{"query": "lights"})
	folders("after a search", 1)
	o.close()
	folders("after the end", 0)
}
