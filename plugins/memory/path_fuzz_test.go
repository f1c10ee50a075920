package memory_test

import (
	"encoding/json"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// FuzzPath stores under any path in any session: it is refused with a reason,
// or there is one file more, found under just that path, whose name leads
// nowhere however often it is decoded.
func FuzzPath(f *testing.F) {
	for _, path := range append(pathAttacks(), unusualPaths()...) {
		f.Add(path, "")
		f.Add(path, "s")
		f.Add("a", path)
	}
	top := f.TempDir()
	settings, err := json.Marshal(map[string]any{"path": filepath.Join(top, "memory"), "engine": "sqlite"})
	if err != nil {
		f.Fatal(err)
	}
	instance, err := teatest.Linked(memory.Bundle()).Open(f.Context(), tea.Settings{"memory": settings})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := instance.Close(); err != nil {
			f.Error(err)
		}
		onlyHashes(f, top)
	})
	a := &agent{Instance: instance, host: bareHost()}
	if _, err := a.try(f.Context(), "session.create", map[string]any{"session_id": "s"}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, given, session string) {
		params := map[string]any{"path": given, "session_id": session, "content": given}
		stored, err := a.try(t.Context(), "memory.file_store", params)
		if err != nil {
			if e := tea.AsError(err); e.Type != tea.PermissionDenied && e.Type != tea.ValidationError && e.Type != tea.NotFound {
				t.Errorf("%q in %q gives %v", given, session, err)
			}
			return
		}
		whole := stored["path"].(string)
		if escapesRoot(whole) {
			t.Errorf("%q in %q is stored under %q", given, session, whole)
		}
		if owner := stored["session_id"]; strings.HasPrefix(whole, "sessions/") != (owner == "s") {
			t.Errorf("%q in %q is stored under %q and belongs to %q", given, session, whole, owner)
		}
		if !utf8.ValidString(given) {
			return // what was sent is another text
		}
		for _, again := range []map[string]any{{"path": given, "session_id": session}, {"path": whole}} {
			got, err := a.try(t.Context(), "memory.file_retrieve", again)
			if err != nil || got["content"] != given || got["path"] != whole {
				t.Errorf("%v gives %v, %v", again, got, err)
			}
		}
		if _, err := a.try(t.Context(), "memory.file_delete", map[string]any{"path": whole}); err != nil {
			t.Error(err)
		}
	})
}

// escapesRoot says whether some reader might take a path out of its root.
func escapesRoot(p string) bool {
	for range 6 {
		if path.IsAbs(p) || !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsAny(p, "\\\x00") || strings.Contains("/"+p+"/", "/../") || path.Clean(p) == ".." {
			return true
		}
		p = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "\\", "%5C", "\\", "%00", "\x00", "%25", "%").Replace(p)
	}
	return false
}
