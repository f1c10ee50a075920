package memory_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// cloudAgents runs a test with each engine and a folder as the shared storage.
func cloudAgents(t *testing.T, test func(t *testing.T, a *agent, blobs string)) {
	t.Helper()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			blobs := t.TempDir()
			a := openAgent(t, teatest.Linked(memory.Bundle()), bareHost(), map[string]any{"path": t.TempDir(), "engine": engine, "blobs": blobs})
			t.Cleanup(func() { a.close(t) })
			test(t, a, blobs)
		})
	}
}

// filesBelow are the sizes of the files below a folder.
func filesBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCloudFiles(t *testing.T) {
	t.Parallel()
	cloudAgents(t, func(t *testing.T, a *agent, blobs string) {
		text := "name: pump\nlimit: 5\n"
		stored := a.do(t, "memory.cloud_store", map[string]any{
			"path": "firms/ä b/pump.yml", "content": text, "metadata": map[string]any{"anchors": []any{"pump", "hall 1"}, "summary": "limits", "serial": 9007199254740993},
		})
		same(t, "stored", pick(stored, "file_path", "doc_id"), []any{"firms/ä b/pump.yml", "firms/ä b/pump.yml"})
		hash := strings.TrimPrefix(stored["content_hash"].(string), "sha256:")
		if uri := stored["storage_uri"].(string); !strings.HasPrefix(uri, blobs+"/cloud/firms/=C3=A4=20b/pump.yml/"+hash) {
			t.Errorf("the address is %s", uri)
		}
		onDisk, err := os.ReadFile(stored["storage_uri"].(string))
		if err != nil || string(onDisk) != text {
			t.Errorf("the storage has %q, %v", onDisk, err)
		}
		got := a.do(t, "memory.cloud_retrieve", map[string]any{"path": "firms/ä b/pump.yml"})
		same(t, "content", pick(got, "content", "encoding"), []any{text, "text"})
		record := got["metadata"].(map[string]any)
		same(t, "record", pick(record, "file_path", "content_type", "storage_uri", "anchors", "status", "summary", "content_hash", "byte_size", "line_count", "token_estimate", "serial"),
			[]any{"firms/ä b/pump.yml", "yaml", stored["storage_uri"], []any{"pump", "hall 1"}, "active", "limits", stored["content_hash"], int64(20), int64(2), int64(9), int64(9007199254740993)})
		same(t, "times", record["created_at"] == record["updated_at"] && record["synced_at"] != nil, true)

		// A new content replaces the old one, and fields that are not given stay.
		a.do(t, "memory.cloud_store", map[string]any{"path": "firms/ä b/pump.yml", "content_base64": base64.StdEncoding.EncodeToString([]byte("\xff\x00"))})
		got = a.do(t, "memory.cloud_retrieve", map[string]any{"path": "firms/ä b/pump.yml"})
		same(t, "bytes", pick(got, "content", "encoding"), []any{"/wA=", "base64"})
		same(t, "fields", pick(got["metadata"].(map[string]any), "anchors", "summary", "byte_size", "line_count", "created_at"), []any{[]any{"pump", "hall 1"}, "limits", int64(2), int64(0), record["created_at"]})
		same(t, "files in the storage", filesBelow(t, blobs), 1)

		for _, path := range []string{"../a", "%2e%2e/a", "/a"} {
			a.fails(t, tea.PermissionDenied, "memory.cloud_store", map[string]any{"path": path, "content": "x"})
		}
		a.fails(t, tea.NotFound, "memory.cloud_retrieve", map[string]any{"path": "none"})
		a.fails(t, tea.ValidationError, "memory.cloud_retrieve", map[string]any{"path": "firms/ä b/pump.yml", "encoding": "text"})
		for name, params := range map[string]map[string]any{
			"no content":       {"path": "a"},
			"derived field":    {"path": "a", "content": "x", "metadata": map[string]any{"content_hash": "sha256:0"}},
			"anchors":          {"path": "a", "content": "x", "metadata": map[string]any{"anchors": "pump"}},
			"status":           {"path": "a", "content": "x", "metadata": map[string]any{"status": "gone"}},
			"not an object":    {"path": "a", "content": "x", "metadata": []any{}},
			"not an embedding": {"path": "a", "content": "x", "metadata": map[string]any{"embedding": []any{"1"}}},
		} {
			t.Log(name)
			a.fails(t, tea.ValidationError, "memory.cloud_store", params)
		}
	})
}

func TestCloudManifest(t *testing.T) {
	t.Parallel()
	cloudAgents(t, func(t *testing.T, a *agent, _ string) {
		for path, anchors := range map[string][]any{"app/a.md": {"x", "y"}, "app/b.md": {"y"}, "app/c.json": {"z"}, "users/1/d.md": {}} {
			a.do(t, "memory.cloud_store", map[string]any{"path": path, "content": path, "metadata": map[string]any{"anchors": anchors}})
		}
		listed := func(params map[string]any) string {
			t.Helper()
			r := a.do(t, "memory.cloud_list", params)
			files := r["files"].([]any)
			same(t, "count", r["count"], int64(len(files)))
			return column(files, "file_path")
		}
		found := func(params map[string]any) string {
			t.Helper()
			return column(a.do(t, "memory.manifest_search", params)["results"], "file_path")
		}
		updated := a.do(t, "memory.manifest_update", map[string]any{"path": "app/b.md", "status": "archived", "updates": map[string]any{"summary": "old", "project_id": "p"}})
		same(t, "updated", pick(updated, "updated", "file_path"), []any{true, "app/b.md"})
		same(t, "the same again", a.do(t, "memory.manifest_update", map[string]any{"path": "app/b.md", "status": "archived"})["updated"], false)
		same(t, "a field is removed", a.do(t, "memory.manifest_update", map[string]any{"path": "app/b.md", "updates": map[string]any{"project_id": nil}})["updated"], true)
		got := a.do(t, "memory.cloud_retrieve", map[string]any{"path": "app/b.md"})
		same(t, "content", got["content"], "app/b.md")
		same(t, "record", pick(got["metadata"].(map[string]any), "status", "summary", "project_id", "anchors"), []any{"archived", "old", nil, []any{"y"}})

		same(t, "all", listed(nil), "app/a.md app/b.md app/c.json users/1/d.md")
		same(t, "a prefix", listed(map[string]any{"prefix": "app/"}), "app/a.md app/b.md app/c.json")
		same(t, "a status", listed(map[string]any{"filters": map[string]any{"status": "archived"}}), "app/b.md")
		same(t, "a type", listed(map[string]any{"filters": map[string]any{"content_type": []any{"json", "yaml"}}}), "app/c.json")
		same(t, "operators", listed(map[string]any{"filters": map[string]any{"byte_size": map[string]any{"gte": 10}}}), "app/c.json users/1/d.md")
		first := a.do(t, "memory.cloud_list", map[string]any{"limit": 3})
		same(t, "a page", []any{column(first["files"], "file_path"), first["next_cursor"]}, []any{"app/a.md app/b.md app/c.json", "app/c.json"})
		same(t, "the next page", listed(map[string]any{"limit": 3, "cursor": first["next_cursor"]}), "users/1/d.md")

		same(t, "any anchor", found(map[string]any{"anchors": []any{"x", "y", "none"}}), "app/a.md app/b.md")
		same(t, "all anchors", found(map[string]any{"anchors": []any{"x", "y"}, "match": "all"}), "app/a.md")
		same(t, "active ones", found(map[string]any{"anchors": []any{"y"}, "status": "active"}), "app/a.md")
		same(t, "no anchors", found(map[string]any{"limit": 2}), "app/a.md app/b.md")

		a.fails(t, tea.NotFound, "memory.manifest_update", map[string]any{"path": "none", "status": "draft"})
		a.fails(t, tea.ValidationError, "memory.manifest_update", map[string]any{"path": "app/a.md"})
		a.fails(t, tea.ValidationError, "memory.manifest_update", map[string]any{"path": "app/a.md", "updates": map[string]any{"byte_size": 1}})
	})
}

// Callers that store one file at the same time leave one record, which names a
// existing content.
func TestCloudStoreAtTheSameTime(t *testing.T) {
	t.Parallel()
	cloudAgents(t, func(t *testing.T, a *agent, blobs string) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for range 5 {
					a.do(t, "memory.cloud_store", map[string]any{"path": "a", "content": strings.Repeat("x", i)})
					a.do(t, "memory.cloud_retrieve", map[string]any{"path": "a"})
				}
			})
		}
		group.Wait()
		got := a.do(t, "memory.cloud_retrieve", map[string]any{"path": "a"})
		same(t, "size", got["metadata"].(map[string]any)["byte_size"], int64(len(got["content"].(string))))
		same(t, "files in the storage", filesBelow(t, blobs), 1)
	})
}

func TestCloudWithoutStorage(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		if message := a.fails(t, tea.ValidationError, "memory.cloud_store", map[string]any{"path": "a", "content": "x"}); !strings.Contains(message, "settings.memory.blobs") {
			t.Error(message)
		}
	})
	a := openAgent(t, teatest.Linked(memory.Bundle()), bareHost(), map[string]any{"path": t.TempDir(), "engine": "sqlite", "blobs": "s3://bucket"})
	t.Cleanup(func() { a.close(t) })
	if message := a.fails(t, tea.DependencyMissing, "memory.cloud_store", map[string]any{"path": "a", "content": "x"}); !strings.Contains(message, "memory[s3]") {
		t.Error(message)
	}
}
