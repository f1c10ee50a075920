package memory_test

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/storetest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// A disk that is full refuses what is new, keeps what is there, and is used
// again as soon as there is room.
func TestSessionsAndFilesOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
				t.Skip("cannot mount a small file system:", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
					t.Errorf("unmount: %v", err)
				}
			})
			a := openAgent(t, teatest.Linked(memory.Bundle()), alone(), map[string]any{"path": filepath.Join(dir, "memory"), "engine": engine})
			defer a.close(t)
			a.do(t, "session.create", map[string]any{"session_id": "s"})
			a.do(t, "memory.file_store", map[string]any{"path": "keep", "content": "kept", "session_id": "s"})

			large := base64.StdEncoding.EncodeToString(make([]byte, 7<<20))
			for _, path := range []string{"keep", "new"} {
				message := a.fails(t, tea.ResourceExhausted, "memory.file_store", map[string]any{"path": path, "content_base64": large, "session_id": "s"})
				if !strings.Contains(message, "no space left") {
					t.Error(message)
				}
			}
			kept := func(status string) {
				t.Helper()
				same(t, "files", column(a.do(t, "memory.file_list", map[string]any{"session_id": "s"})["files"], "size"), "4")
				same(t, "content", a.do(t, "memory.file_retrieve", map[string]any{"session_id": "s", "path": "keep"})["content"], any("kept"))
				same(t, "status", a.do(t, "session.get", map[string]any{"session_id": "s"})["status"], any(status))
				halves, err := filepath.Glob(filepath.Join(dir, "memory", "blobs", ".*"))
				same(t, "half written", len(halves) == 0 && err == nil, true)
			}
			kept("active")

			free := fill(t, dir)
			changed, status := false, "active"
			for _, action := range []string{"session.end", "session.create"} {
				_, err := a.try(t.Context(), action, map[string]any{"session_id": "s"})
				if e := tea.AsError(err); e != nil && e.Type != tea.ResourceExhausted && e.Type != tea.ValidationError {
					t.Errorf("%s gives %v", action, err)
				}
				changed = changed || action == "session.end" && err == nil // there was room for so little
			}
			if changed {
				status = "archived"
			}
			free()
			kept(status)
			a.do(t, "session.end", map[string]any{"session_id": "s"})
			kept("archived")
			a.do(t, "memory.file_store", map[string]any{"path": "more", "content": "more"})
		})
	}
}

// TestTablesAreReadAfterAStartOnAFullDisk is about the views of the tables, which
// a start writes again.
func TestTablesAreReadAfterAStartOnAFullDisk(t *testing.T) {
	if !storetest.OwnMounts(t) {
		return
	}
	eachEngine(t, func(t *testing.T, engine string) {
		disk := storetest.NewDisk(t, "24m")
		settings := map[string]any{"path": filepath.Join(disk.Dir, "memory"), "engine": engine}
		o := mustOpen(t, settings)
		o.must("data.create_table", map[string]any{"name": "t", "schema": []any{map[string]any{"name": "a", "type": "int"}}, "primary_key": []any{"a"}})
		many := make([]any, 500)
		for i := range many {
			many[i] = map[string]any{"a": int64(i)}
		}
		o.must("data.insert", map[string]any{"table": "t", "rows": many})
		o.close()
		disk.Fill(t)
		o = mustOpen(t, settings)
		defer o.close()
		query := map[string]any{"sql": "select count(*) as n from t"}
		for range 2 {
			same(t, "rows", column(o.must("data.query", query)["rows"], "n"), "500")
		}
		disk.Free(t)
		o.must("data.insert", map[string]any{"table": "t", "rows": []any{map[string]any{"a": 1000}}})
		same(t, "rows", column(o.must("data.query", query)["rows"], "n"), "501")
	})
}

// fill takes all the room of a disk.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, fs.FileMode(0o600))
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; size /= 4 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
