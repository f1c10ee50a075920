package cloud_test

import (
	"slices"
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
)

// TestEnginesLackWhatTheirTableSays asks each engine for what not all have. What an engine
// lacks is found without its server.
func TestEnginesLackWhatTheirTableSays(t *testing.T) {
	t.Parallel()
	const nowhere = "127.0.0.1:1"
	of := map[string]map[string]any{
		"sqlite":    {},
		"postgres":  {"url": "postgres://user@" + nowhere + "/db?sslmode=disable"},
		"libsql":    {"url": "http://" + nowhere},
		"d1":        {"url": "http://" + nowhere + "/a/d1/database/db1"},
		"firestore": {"url": "firestore://project-1", "options": map[string]any{"endpoint": "http://" + nowhere}},
		"bucket":    {},
		"objects":   {},
	}
	actions := map[store.Capability]struct {
		name   string
		params map[string]any
	}{
		store.FullText: {"ltm.search", map[string]any{"query": "harbor"}},
		store.Records:  {"memory.export", map[string]any{"path": "all"}},
		store.Contents: {"memory.file_store", map[string]any{"path": "a", "content": "x"}},
		store.SQL:      {"memory.sql_query", map[string]any{"sql": "SELECT count(*) FROM memories, vectors, files, sessions"}},
		store.Tables:   {"data.create_table", map[string]any{"name": "t", "schema": map[string]any{"a": "int"}}},
	}
	for _, engine := range store.Engines() {
		settings, ok := of[engine.Name]
		if !ok { // DuckDB needs C
			continue
		}
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			settings["engine"], settings["path"], settings["archives"], settings["timeout"] = engine.Name, t.TempDir(), t.TempDir(), 1
			here := slices.Contains([]string{"sqlite", "bucket", "objects"}, engine.Name)
			if here && engine.Name != "sqlite" {
				server := objtest.S3(t)
				settings["url"], settings["options"], settings["timeout"] = server.Address+"/agents", server.Settings, 30
			}
			call := opened(t, settings)
			for _, c := range store.Capabilities() {
				if c == store.Contents && !here { // the server is asked first
					continue
				}
				action := actions[c]
				_, err := call(action.name, action.params)
				lacks := err != nil && tea.AsError(err).Type == tea.DependencyMissing
				if lacks != slices.Contains(engine.Lacks, c) {
					t.Errorf("the table has %v, and %s returns %v", engine.Lacks, action.name, err)
				}
				if err != nil && !lacks && here {
					t.Errorf("%s: %v", action.name, err)
				}
			}
		})
	}
}
