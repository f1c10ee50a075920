package cloud_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/objstore/s3"
	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// Files of memory.cloud_store are in the bucket of settings.memory.blobs.
func TestFilesInABucket(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *objtest.Server{"s3": objtest.S3, "gcs": objtest.GCS, "azure": objtest.Azure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			memorySettings := map[string]any{"path": t.TempDir(), "engine": "sqlite", "blobs": server.Address + "/agents", "blob_options": server.Settings}
			call := opened(t, memorySettings)
			stored, err := call("memory.cloud_store", map[string]any{"path": "notes/a.md", "content": "# A", "metadata": map[string]any{"anchors": []any{"x"}}})
			if err != nil {
				t.Fatal(err)
			}
			if uri, _ := stored["storage_uri"].(string); !strings.HasPrefix(uri, server.Address+"/agents/cloud/notes/a.md/") {
				t.Errorf("stored at %s", uri)
			}
			got, err := call("memory.cloud_retrieve", map[string]any{"path": "notes/a.md"})
			if err != nil || got["content"] != "# A" {
				t.Errorf("retrieved %v, %v", got, err)
			}
			server.Kill()
			if _, err := call("memory.cloud_retrieve", map[string]any{"path": "notes/a.md"}); err == nil || tea.AsError(err).Type != tea.ConnectionError {
				t.Errorf("without the server: %v", err)
			}
		})
	}
}

// opened opens the bundle and returns a function that calls its actions.
func opened(t *testing.T, settings map[string]any) func(action string, params map[string]any) (map[string]any, error) {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := teatest.Linked(memory.Bundle(cloud.Options()...)).Open(t.Context(), tea.Settings{"memory": raw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(action string, params map[string]any) (map[string]any, error) {
		raw, err := json.Marshal(params)
		if err != nil {
			return nil, err
		}
		answer, err := instance.Invoke(t.Context(), &tea.Request{Action: action, Params: tea.RawPayload(raw), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}})
		if err != nil {
			return nil, err
		}
		result, err := answer.Result.Value()
		object, _ := result.(map[string]any)
		return object, err
	}
}

// Two agents share a memory in a bucket.
func TestMemoryInABucket(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *objtest.Server{"s3": objtest.S3, "gcs": objtest.GCS, "azure": objtest.Azure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			raw, err := json.Marshal(server.Settings)
			if err != nil {
				t.Fatal(err)
			}
			agent := func(acknowledge string) func(string, map[string]any) (map[string]any, error) {
				options := map[string]any{}
				if err := json.Unmarshal(raw, &options); err != nil {
					t.Fatal(err)
				}
				options["acknowledge"] = acknowledge
				return opened(t, map[string]any{"path": t.TempDir(), "engine": "blob-sqlite", "url": server.Address + "/agents", "options": options})
			}
			one, two := agent("remote"), agent("local")
			for action, params := range map[string]map[string]any{
				"memory.file_store": {"path": "notes/a.md", "content": "the pump in hall two"},
				"session.create":    {"session_id": "s1"},
				"vector.store":      {"collection": "c", "ids": []any{"x"}, "embeddings": []any{[]any{1, 0}}},
			} {
				if _, err := one(action, params); err != nil {
					t.Fatalf("%s: %v", action, err)
				}
			}
			stored, err := one("ltm.store", map[string]any{"key": "a", "value": "pressure of the pump"})
			if err != nil || stored["acknowledged"] != "remote" {
				t.Fatalf("stored %v, %v", stored, err)
			}
			if got, err := two("ltm.search", map[string]any{"query": "pump"}); err != nil || got["count"] != int64(1) {
				t.Errorf("found %v, %v", got, err)
			}
			if got, err := two("memory.file_retrieve", map[string]any{"path": "notes/a.md"}); err != nil || got["content"] != "the pump in hall two" {
				t.Errorf("the file: %v, %v", got, err)
			}
			if got, err := two("ltm.store", map[string]any{"key": "b", "value": 1}); err != nil || got["acknowledged"] != "local" {
				t.Errorf("stored %v, %v", got, err)
			}
			if got, err := one("ltm.retrieve", map[string]any{"key": "b"}); err != nil || got["value"] != int64(1) {
				t.Errorf("retrieved %v, %v", got, err)
			}
			if got, err := one("memory.inspect", nil); err != nil || got["state"] != "ok" || got["total_bytes"] == int64(0) {
				t.Errorf("inspected %v, %v", got, err)
			}
			if got, err := one("memory.sql_query", map[string]any{"sql": "SELECT count(*) AS n FROM memories JOIN files ON path = 'notes/a.md'"}); err != nil || got["row_count"] != int64(1) || got["rows"].([]any)[0].(map[string]any)["n"] != int64(2) {
				t.Errorf("SQL: %v, %v", got, err)
			}
			if _, err := one("memory.sql_query", map[string]any{"sql": "SELECT * FROM sqlite_schema"}); err == nil || tea.AsError(err).Type != tea.ValidationError && tea.AsError(err).Type != tea.PermissionDenied {
				t.Errorf("SQL of the schema: %v", err)
			}
			if _, err := one("data.create_table", map[string]any{"name": "readings", "schema": map[string]any{"id": "int", "value": "float"}, "primary_key": "id"}); err != nil {
				t.Errorf("create a table: %v", err)
			}
			if got, err := two("data.insert", map[string]any{"table": "readings", "rows": []any{map[string]any{"id": 1, "value": 2.5}}}); err != nil || got["stored"] != "rows" {
				t.Errorf("inserted %v, %v", got, err)
			}
			if got, err := one("data.query", map[string]any{"sql": "SELECT * FROM readings"}); err != nil || fmt.Sprint(got["rows"]) != "[map[id:1 value:2.5]]" {
				t.Errorf("rows %v, %v", got, err)
			}
		})
	}
}

// DuckDB reads the Parquet file of the last snapshot from the bucket, to write the next
// one.
func TestParquetInABucket(t *testing.T) {
	t.Parallel()
	if !duckdb.Available {
		t.Skip("the build has no DuckDB")
	}
	server := objtest.S3(t)
	call := opened(t, map[string]any{"path": t.TempDir(), "engine": "duckdb", "blobs": server.Address + "/agents", "blob_options": server.Settings})
	do := func(action string, params map[string]any) map[string]any {
		t.Helper()
		result, err := call(action, params)
		if err != nil {
			t.Fatalf("%s: %v", action, err)
		}
		return result
	}
	bucket := server.Open(t, nil, s3.Scheme())
	rows := func(synced map[string]any) (all []string) {
		t.Helper()
		name, _ := synced["path"].(string)
		_, r, err := bucket.Get(t.Context(), "agents/"+name, 0, objstore.All)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.parquet"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		err = duckdb.Texts(t.Context(), dir, "SELECT file_path || '=' || content FROM read_parquet('"+filepath.Join(dir, "a.parquet")+"') ORDER BY 1", func(row string) { all = append(all, row) })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for i := range 3 {
		do("memory.cloud_store", map[string]any{"path": fmt.Sprintf("%d.md", i), "content": "first"})
	}
	do("memory.sync_parquet", nil)
	do("memory.cloud_store", map[string]any{"path": "1.md", "content": "second"})
	synced := do("memory.sync_parquet", nil)
	if synced["changed"] != int64(1) || synced["row_count"] != int64(3) {
		t.Errorf("synchronised %v", synced)
	}
	if diff := cmp.Diff([]string{"0.md=first", "1.md=second", "2.md=first"}, rows(synced)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	server.Kill()
	do("memory.inspect", nil)
	if _, err := call("memory.sync_parquet", nil); err == nil || tea.AsError(err).Type != tea.ConnectionError {
		t.Errorf("without the server: %v", err)
	}
	server.Restart(t)
	if again := do("memory.sync_parquet", nil); again["snapshot_id"] != synced["snapshot_id"] {
		t.Errorf("again: %v", again)
	}
}
