package memory_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestFile(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		text := "# Pump\n\nIt is hot, hello world.\n"
		stored := a.do(t, "memory.file_store", map[string]any{"path": "./notes//pump.md", "content": text, "metadata": map[string]any{"device": "pump-1"}})
		same(t, "stored", pick(stored, "created", "changed", "path", "size", "content_type", "lines", "tokens", "metadata", "session_id", "archived"),
			[]any{true, true, "notes/pump.md", int64(len(text)), "text/markdown", int64(3), int64(10), map[string]any{"device": "pump-1"}, "", false})
		again := a.do(t, "memory.file_store", map[string]any{"path": "notes/pump.md", "content": text, "metadata": map[string]any{"device": "pump-1"}})
		same(t, "the same again", pick(again, "created", "changed", "hash", "updated_at"), []any{false, false, stored["hash"], stored["updated_at"]})
		got := a.do(t, "memory.file_retrieve", map[string]any{"path": "notes/pump.md"})
		same(t, "retrieved", pick(got, "content", "encoding", "hash"), []any{text, "text", stored["hash"]})
		same(t, "as base64", pick(a.do(t, "memory.file_retrieve", map[string]any{"path": "notes/pump.md", "encoding": "base64"}), "content", "encoding"),
			[]any{base64.StdEncoding.EncodeToString([]byte(text)), "base64"})
		over := a.do(t, "memory.file_store", map[string]any{"path": "notes/pump.md", "content": "new", "content_type": "text/plain"})
		same(t, "replaced", pick(over, "created", "changed", "size", "content_type", "metadata", "created_at"), []any{false, true, int64(3), "text/plain", nil, stored["created_at"]})

		bytes := []byte("\x00\x01\xff\xfepump")
		encoded := base64.StdEncoding.EncodeToString(bytes)
		stored = a.do(t, "memory.file_store", map[string]any{"path": "data.bin", "content_base64": encoded})
		same(t, "bytes", pick(stored, "size", "content_type", "lines", "tokens"), []any{int64(8), "application/octet-stream", int64(0), int64(0)})
		same(t, "bytes", pick(a.do(t, "memory.file_retrieve", map[string]any{"path": "data.bin"}), "content", "encoding"), []any{encoded, "base64"})
		if message := a.fails(t, tea.ValidationError, "memory.file_retrieve", map[string]any{"path": "data.bin", "encoding": "text"}); !strings.Contains(message, "base64") {
			t.Error(message)
		}
		a.do(t, "memory.file_store", map[string]any{"path": "empty", "content": ""})
		same(t, "empty", pick(a.do(t, "memory.file_retrieve", map[string]any{"path": "empty"}), "content", "size"), []any{"", int64(0)})

		same(t, "deleted", a.do(t, "memory.file_delete", map[string]any{"path": "data.bin"}), map[string]any{"deleted": true, "path": "data.bin"})
		same(t, "deleted twice", a.do(t, "memory.file_delete", map[string]any{"path": "data.bin"}), map[string]any{"deleted": false, "path": "data.bin"})
		a.fails(t, tea.NotFound, "memory.file_retrieve", map[string]any{"path": "data.bin"})
		for _, params := range []map[string]any{
			{"path": "a"},
			{"path": "a", "content": "x", "content_base64": "eA=="},
			{"path": "a", "content_base64": "%%"},
			{"path": "", "content": "x"},
			{"path": ".", "content": "x"},
			{"path": "a", "content": "x", "metadata": []any{}},
			{"path": "a", "content": 5},
		} {
			a.fails(t, tea.ValidationError, "memory.file_store", params)
		}
		same(t, "files", column(a.do(t, "memory.file_list", nil)["files"], "path"), "empty notes/pump.md")
	})
}

func TestFileList(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		a.do(t, "session.create", map[string]any{"session_id": "s"})
		for i, path := range []string{"a.md", "docs/b.md", "docs/deep/c.md", "docs/deep/d.txt", "e.txt"} {
			a.do(t, "memory.file_store", map[string]any{"path": path, "content": path, "metadata": map[string]any{"n": i}})
			a.do(t, "memory.file_store", map[string]any{"path": path, "content": path, "session_id": "s"})
		}
		list := func(params map[string]any) string {
			t.Helper()
			result := a.do(t, "memory.file_list", params)
			same(t, "count", result["count"], int64(len(result["files"].([]any))))
			return strings.ReplaceAll(column(result["files"], "path"), "sessions/s/", "~")
		}
		for _, test := range []struct {
			params map[string]any
			want   string
		}{
			{nil, "a.md docs/b.md docs/deep/c.md docs/deep/d.txt e.txt ~a.md ~docs/b.md ~docs/deep/c.md ~docs/deep/d.txt ~e.txt"},
			{map[string]any{"prefix": "docs/d"}, "docs/deep/c.md docs/deep/d.txt"},
			{map[string]any{"pattern": "*.txt"}, "docs/deep/d.txt e.txt ~docs/deep/d.txt ~e.txt"},
			{map[string]any{"pattern": "docs/*.md"}, "docs/b.md"},
			{map[string]any{"pattern": "docs/**/*.md"}, "docs/b.md docs/deep/c.md"},
			{map[string]any{"pattern": "docs/deep/"}, "docs/deep/c.md docs/deep/d.txt"},
			{map[string]any{"pattern": "{a,b}.md", "session_id": "s"}, "~a.md ~docs/b.md"},
			{map[string]any{"prefix": "docs/", "pattern": "*.md", "session_id": "s"}, "~docs/b.md ~docs/deep/c.md"},
			{map[string]any{"metadata_filter": map[string]any{"n": []any{1, 4}}}, "docs/b.md e.txt"},
			{map[string]any{"prefix": "none"}, ""},
		} {
			same(t, fmt.Sprint(test.params), list(test.params), test.want)
		}
		for _, session := range []string{"", "s"} {
			var pages []string
			for cursor := ""; ; {
				result := a.do(t, "memory.file_list", map[string]any{"limit": 2, "cursor": cursor, "prefix": "docs/", "session_id": session})
				pages = append(pages, strings.ReplaceAll(column(result["files"], "path"), "sessions/s/", ""))
				if cursor = result["next_cursor"].(string); cursor == "" {
					break
				}
			}
			same(t, "pages", pages, []string{"docs/b.md docs/deep/c.md", "docs/deep/d.txt"})
		}
		a.fails(t, tea.NotFound, "memory.file_list", map[string]any{"session_id": "none"})
		for _, params := range []map[string]any{{"pattern": "[a"}, {"pattern": "{a"}, {"pattern": "[z-a]"}, {"limit": 0}, {"limit": 1001}, {"pattern": strings.Repeat("a", 5000)}} {
			a.fails(t, tea.ValidationError, "memory.file_list", params)
		}
		a.fails(t, tea.PermissionDenied, "memory.file_list", map[string]any{"prefix": "../"})
	})
}

// pathAttacks lead out of the root, or would on some system.
func pathAttacks() []string {
	return []string{
		"..", "../x", "a/../../x", "a/..", "./../x", ".. /x", "a/.. ", "..\t/x", "/etc/passwd", "//etc/passwd", "/", "///",
		"%2e%2e/x", "%2E%2E%2Fx", "..%2fx", "%2fetc/passwd", "a%2f..%2f..%2fx", // encoded once
		"%252e%252e%252fx", "%252fetc", "..%252fx", // twice
		"%25252e%25252e%25252fx", "%25252fetc", // three times
		"%2525252e%2525252e%2525252fx", "%252525252e%252525252e/x", // and more
		"....//....//etc/passwd", "..;/x", "a/..;/..;/x", "%2e%2e%3b/x", "....%2f%2fx",
		"..\\x", "a\\b", "%5c..%5cx", "%255cx", "\\\\host\\share", "\\etc",
		"C:\\x", "C:/x", "c:x", "c%3ax", "file:///etc/passwd", "file:x", "FILE%3a//x", "http://a/b", "s3://bucket/x", "data:text/plain,x", "jar:file:x",
		"..%c0%afx", "%c0%ae%c0%ae/x", "\xc0\xae\xc0\xae/x", "a\xffb", "%ff%fe",
		"~", "~/x", "~root/x", "a\nb", "a%0ab", "a\rb", "a\x7fb", "a\x1bb",
		"\u2025/x", "\uff0e\uff0e/x", "\u2024\u2024/x", "..\uff0fx", "..\u2215x", "..\u2044x", "..\uff3cx", "\ufeff../x", "a\u202eb", "a\u200bb", "\u2028x",
		"a|b", "a>b", "<a", "a\"b", "a*", "a?",
		"sessions/../x", "archive/../sessions/s/x", "archive/sessions/s/../../x", "sessions/%2e%2e/x",
	}
}

// unusualPaths are names like any other: a file is found under just its own. On
// the disk no file has such a name, so what some systems do to names does not
// matter.
func unusualPaths() []string {
	return []string{
		"a", "a ", "a.", "a..", " a", "A", "...", "a...b", ".hidden", "CON", "nul.txt", "LPT1", "aux/a", "ä", "a\u0308", "ａ", "a%20b", "a b", "100%", "x/a:b", "x=1&y", "日本/語.md", "-rf", "$HOME", "`id`", "a;b", "'", "{a,b}", "[a]",
		strings.Repeat("long/", 200) + "x", strings.Repeat("x", 3000), "archive/a", "sessions", "archive/sessions", ".writing-x", "files/ab/cd",
	}
}

func TestPathsDoNotLeadOut(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			a := openAgent(t, teatest.Linked(memory.Bundle()), bareHost(), map[string]any{"path": filepath.Join(top, "memory"), "engine": engine})
			defer a.close(t)
			a.do(t, "session.create", map[string]any{"session_id": "s"})
			a.do(t, "memory.file_store", map[string]any{"path": "a", "content": "a"})
			for _, path := range pathAttacks() {
				if !strings.Contains(path, "\xff") && !strings.Contains(path, "\xc0") { // no JSON carries these
					refusedPath(t, a, path)
				}
			}
			for _, path := range []string{strings.Repeat("a", 5000), strings.Repeat("a/", 3000), "a\x00b", "a%00b", "%2500", "%252500.md", "a\x00/../b"} {
				a.fails(t, tea.ValidationError, "memory.file_store", map[string]any{"path": path, "content": "x"})
				a.fails(t, tea.ValidationError, "memory.cloud_store", map[string]any{"path": path, "content": "x"})
			}
			a.do(t, "memory.file_delete", map[string]any{"path": "a"})

			for i, path := range unusualPaths() {
				content := fmt.Sprint("odd ", i)
				same(t, path, pick(a.do(t, "memory.file_store", map[string]any{"path": path, "content": content}), "path", "created"), []any{path, true})
				a.do(t, "memory.file_store", map[string]any{"path": path, "content": content + " in s", "session_id": "s"})
			}
			for i, path := range unusualPaths() {
				same(t, path, a.do(t, "memory.file_retrieve", map[string]any{"path": path})["content"], any(fmt.Sprint("odd ", i)))
				same(t, path, a.do(t, "memory.file_retrieve", map[string]any{"path": path, "session_id": "s"})["content"], any(fmt.Sprint("odd ", i, " in s")))
			}
			onlyHashes(t, top)
		})
	}
}

func refusedPath(t *testing.T, a *agent, path string) {
	t.Helper()
	for action, params := range map[string]map[string]any{
		"memory.file_store": {"path": path, "content": "x"}, "memory.file_retrieve": {"path": path}, "memory.file_delete": {"path": path}, "memory.file_list": {"prefix": path},
	} {
		a.fails(t, tea.PermissionDenied, action, params)
		if action == "memory.file_list" {
			continue
		}
		params["session_id"] = "s"
		a.fails(t, tea.PermissionDenied, action, params)
		params["path"], params["session_id"] = "a", path
		_, err := a.try(t.Context(), action, params)
		if e := tea.AsError(err); e == nil || (e.Type != tea.PermissionDenied && e.Type != tea.ValidationError && e.Type != tea.NotFound) {
			t.Errorf("%s with the session_id %q gives %v", action, path, err)
		}
	}
}

// onlyHashes wants that the names of blobs on the disk come from contents, and
// that nothing lies outside the memory.
func onlyHashes(t testing.TB, top string) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(top, path)
		parts := strings.Split(filepath.ToSlash(rel), "/")
		if parts[0] != "memory" {
			t.Errorf("%s lies outside the memory", rel)
		}
		if len(parts) < 2 || parts[1] != "blobs" {
			return err
		}
		if len(parts) != 5 || parts[2] != "files" || len(parts[4]) != 64 || parts[3] != parts[4][:2] {
			t.Errorf("%s is the name of no content", rel)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A user who is named does not get at the files of another user's session, by
// the session or by the whole path.
func TestFilesOfAnotherUsersSessionAreRefused(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		o := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": engine})
		defer o.close()
		o.must("session.create", map[string]any{"session_id": "s", "user_id": "ann"})
		o.must("memory.file_store", map[string]any{"path": "f", "content": "secret", "session_id": "s", "user_id": "ann"})
		calls := []struct {
			action string
			params map[string]any
		}{
			{"memory.file_retrieve", map[string]any{"path": "f", "session_id": "s"}},
			{"memory.file_retrieve", map[string]any{"path": "sessions/s/f"}},
			{"memory.file_store", map[string]any{"path": "f", "content": "changed", "session_id": "s"}},
			{"memory.file_list", map[string]any{"session_id": "s"}},
			{"memory.file_delete", map[string]any{"path": "sessions/s/f"}},
		}
		for _, c := range calls {
			c.params["user_id"] = "bob"
			if _, err := o.call(c.action, c.params); typeOf(err) != tea.PermissionDenied {
				t.Errorf("%s %v by another user: %v", c.action, c.params, err)
			}
			if c.action == "memory.file_delete" {
				break
			}
			c.params["user_id"] = "ann"
			if _, err := o.call(c.action, c.params); err != nil {
				t.Errorf("%s %v by the owner: %v", c.action, c.params, err)
			}
		}
		same(t, "content", o.must("memory.file_retrieve", map[string]any{"path": "f", "session_id": "s"})["content"], any("changed"))
	})
}

// Lists and searches for a user had the files of other users' sessions.
func TestFilesOfAnotherUsersSessionAreNotFound(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		o := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": engine})
		defer o.close()
		o.must("memory.file_store", map[string]any{"path": "all.json", "content": `{"a": "word"}`})
		for session, user := range map[string]string{"s1": "ann", "s2": "bob", "s3": ""} {
			o.must("session.create", map[string]any{"session_id": session, "user_id": user})
			o.must("memory.file_store", map[string]any{"path": "f.json", "content": `{"a": "word"}`, "session_id": session})
		}
		o.must("session.archive", map[string]any{"session_id": "s1"})
		for user, want := range map[string][]string{
			"ann": {"all.json", "archive/sessions/s1/f.json", "sessions/s3/f.json"},
			"bob": {"all.json", "sessions/s2/f.json", "sessions/s3/f.json"},
			"eve": {"all.json", "sessions/s3/f.json"},
			"":    {"all.json", "archive/sessions/s1/f.json", "sessions/s2/f.json", "sessions/s3/f.json"},
		} {
			for _, c := range []struct{ action, list string }{{"memory.file_list", "files"}, {"memory.grep", "matches"}, {"memory.search_content", "results"}} {
				params := map[string]any{"user_id": user, "include_archived": true}
				switch c.action {
				case "memory.grep":
					params["pattern"] = "word"
				case "memory.search_content":
					params["fields"] = map[string]any{"$.a": "word"}
				}
				var got []string
				for _, f := range o.must(c.action, params)[c.list].([]any) {
					got = append(got, f.(map[string]any)["path"].(string))
				}
				same(t, c.action+" for "+user, got, want)
			}
		}
		for _, action := range []string{"memory.grep", "memory.search_content"} {
			params := map[string]any{"pattern": "word", "session_id": "s2", "user_id": "eve"}
			if action == "memory.search_content" {
				delete(params, "pattern")
				params["fields"] = map[string]any{"$.a": "word"}
			}
			if _, err := o.call(action, params); typeOf(err) != tea.PermissionDenied {
				t.Errorf("%s in another user's session: %v", action, err)
			}
		}
	})
}
