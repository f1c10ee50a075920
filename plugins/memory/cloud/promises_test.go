package cloud_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"
	tea "github.com/the-edge-agent/tea/sdk"
)

// promises returns the table of the design note: the cells by row and column.
func promises(t *testing.T) map[string]map[string]string {
	t.Helper()
	note, err := os.ReadFile("../../../docs/design/016-stores.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(note), "### What each store promises\n\n")
	if !found {
		t.Fatal("the design note has no table of promises")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]map[string]string{}
	var columns []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if columns == nil {
			columns = cells
			continue
		}
		rows[cells[0]] = map[string]string{}
		for i, cell := range cells[1:] {
			if i < len(columns) {
				rows[cells[0]][columns[i]] = cell
			}
		}
	}
	return rows
}

// TestPromisesOfTheDesignNote asks each engine for what the table says that not
// all have. What an engine lacks is found without its server.
func TestPromisesOfTheDesignNote(t *testing.T) {
	t.Parallel()
	table := promises(t)
	const nowhere = "127.0.0.1:1"
	for _, test := range []struct {
		column   string
		settings map[string]any
	}{
		{"embedded", map[string]any{"engine": "sqlite"}},
		{"postgres", map[string]any{"engine": "postgres", "url": "postgres://user@" + nowhere + "/db?sslmode=disable"}},
		{"libsql, d1", map[string]any{"engine": "libsql", "url": "http://" + nowhere}},
		{"libsql, d1", map[string]any{"engine": "d1", "url": "http://" + nowhere + "/a/d1/database/db1"}},
		{"firestore", map[string]any{"engine": "firestore", "url": "firestore://project-1", "options": map[string]any{"endpoint": "http://" + nowhere}}},
		{"bucket", map[string]any{"engine": "bucket"}},
	} {
		engine, _ := test.settings["engine"].(string)
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			settings := test.settings
			settings["path"], settings["archives"], settings["timeout"] = t.TempDir(), t.TempDir(), 1
			if engine == "bucket" {
				server := objtest.S3(t)
				settings["url"], settings["options"], settings["timeout"] = server.Address+"/agents", server.Settings, 30
			}
			call := opened(t, settings)
			for row, action := range map[string]struct {
				name   string
				params map[string]any
			}{
				"full text":               {"ltm.search", map[string]any{"query": "harbor"}},
				"archives, `memory.sync`": {"memory.export", map[string]any{"path": "all"}},
				"`memory.sql_query`":      {"memory.sql_query", map[string]any{"sql": "SELECT count(*) FROM memories, vectors, files, sessions"}},
				"`data.*`":                {"data.create_table", map[string]any{"name": "t", "schema": map[string]any{"a": "int"}}},
			} {
				promise, ok := table[row][test.column]
				if !ok {
					t.Errorf("the table has no cell %s of %s", row, test.column)
				}
				_, err := call(action.name, action.params)
				lacks := err != nil && tea.AsError(err).Type == tea.DependencyMissing
				if lacks != (promise == "no") {
					t.Errorf("%s promises %q, and %s returns %v", row, promise, action.name, err)
				}
				if err != nil && !lacks && slices.Contains([]string{"sqlite", "bucket"}, engine) {
					t.Errorf("%s: %v", action.name, err)
				}
			}
		})
	}
}
