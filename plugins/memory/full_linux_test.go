package memory_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

// A disk that is full refuses what is new, keeps what is there, and is used
// again as soon as there is room.
func TestSessionsAndFilesOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			disk := smalldisktest.New(t, "6m")
			dir := disk.Dir
			a := openAgent(t, teatest.Linked(memory.Bundle()), bareHost(), map[string]any{"path": filepath.Join(dir, "memory"), "engine": engine})
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

			disk.Fill(t, 0)
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
			disk.Free(t)
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
	if !devicetest.OwnMounts(t) {
		return
	}
	eachEngine(t, func(t *testing.T, engine string) {
		disk := smalldisktest.New(t, "24m")
		settings := map[string]any{"path": filepath.Join(disk.Dir, "memory"), "engine": engine}
		o := mustOpen(t, settings)
		o.must("data.create_table", map[string]any{"name": "t", "schema": []any{map[string]any{"name": "a", "type": "int"}}, "primary_key": []any{"a"}})
		many := make([]any, 500)
		for i := range many {
			many[i] = map[string]any{"a": int64(i)}
		}
		o.must("data.insert", map[string]any{"table": "t", "rows": many})
		o.close()
		disk.Fill(t, 0)
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

// TestRecordsAreReadAfterAKillOnAFullDisk is about a recovery without room.
func TestRecordsAreReadAfterAKillOnAFullDisk(t *testing.T) {
	peertest.Long(t, "it fills disks")
	if !devicetest.OwnMounts(t) {
		return
	}
	eachEngine(t, func(t *testing.T, engine string) {
		disk := smalldisktest.New(t, "24m")
		dir := t.TempDir()
		o := mustOpen(t, map[string]any{"path": dir, "engine": engine})
		stores(o, "early")
		o.close()
		o = mustOpen(t, map[string]any{"path": dir, "engine": engine})
		stores(o, "late")
		for i := range 2000 {
			o.must("session.create", map[string]any{"session_id": fmt.Sprint(i)})
		}
		left := filepath.Join(disk.Dir, "memory")
		if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		o.close()
		if err := os.Remove(filepath.Join(left, "reserve")); err != nil { // it was used
			t.Fatal(err)
		}
		disk.Fill(t, 0)
		settings := map[string]any{"path": left, "engine": engine}
		for range 2 {
			o = mustOpen(t, settings)
			for _, name := range []string{"early", "late"} {
				same(t, name, o.must("memory.file_retrieve", map[string]any{"path": name + ".txt"})["content"], any("content of "+name))
				same(t, name, o.must("session.get", map[string]any{"session_id": name})["status"], any("active"))
			}
			o.close()
		}
		disk.Free(t)
		o = mustOpen(t, settings)
		defer o.close()
		holds(t, o, "early")
		holds(t, o, "late")
	})
}
