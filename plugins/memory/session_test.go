package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// bareHost is a host without actions.
func bareHost() *teatest.Host { return &teatest.Host{} }

// pick returns some fields of a result.
func pick(result map[string]any, fields ...string) (values []any) {
	for _, f := range fields {
		values = append(values, result[f])
	}
	return values
}

// column returns one field of each object of a list, as a text.
func column(list any, field string) string {
	var values []string
	for _, one := range list.([]any) {
		values = append(values, fmt.Sprint(one.(map[string]any)[field]))
	}
	return strings.Join(values, " ")
}

func TestSession(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		made := a.do(t, "session.create", map[string]any{"session_id": "s", "user_id": "ann", "ttl": 3600, "metadata": map[string]any{"topic": "pump"}})
		same(t, "created", pick(made, "session_id", "user_id", "status", "reason", "metadata", "ttl", "archived_at", "files_path"),
			[]any{"s", "ann", "active", "", map[string]any{"topic": "pump"}, 3600., nil, "sessions/s/"})
		created, err := time.Parse(time.RFC3339, made["created_at"].(string))
		if err != nil {
			t.Fatal(err)
		}
		expires, err := time.Parse(time.RFC3339, made["expires_at"].(string))
		same(t, "expires", fmt.Sprint(expires.Sub(created), err), fmt.Sprint(time.Hour, nil))
		same(t, "get", a.do(t, "session.get", map[string]any{"session_id": "s"}), made)

		a.do(t, "memory.file_store", map[string]any{"path": "notes/a.md", "content": "it is hot", "session_id": "s"})
		ended := a.do(t, "session.end", map[string]any{"session_id": "s"})
		same(t, "ended", pick(ended, "changed", "status", "reason", "files_path"), []any{true, "archived", "ended", "archive/sessions/s/"})
		again := a.do(t, "session.end", map[string]any{"session_id": "s"})
		same(t, "ended twice", pick(again, "changed", "status", "reason", "archived_at"), []any{false, "archived", "ended", ended["archived_at"]})

		// Out of sight, but there.
		same(t, "files", a.do(t, "memory.file_list", nil)["files"], any([]any{}))
		same(t, "lines", a.do(t, "memory.grep", map[string]any{"pattern": "hot"})["count"], int64(0))
		same(t, "all files", column(a.do(t, "memory.file_list", map[string]any{"include_archived": true})["files"], "path"), "archive/sessions/s/notes/a.md")
		same(t, "its files", column(a.do(t, "memory.file_list", map[string]any{"session_id": "s"})["files"], "archived"), "true")
		for _, params := range []map[string]any{{"path": "notes/a.md", "session_id": "s"}, {"path": "sessions/s/notes/a.md"}, {"path": "archive/sessions/s/notes/a.md"}} {
			same(t, "retrieved", pick(a.do(t, "memory.file_retrieve", params), "content", "archived", "session_id"), []any{"it is hot", true, "s"})
		}
		same(t, "grep", column(a.do(t, "memory.grep", map[string]any{"pattern": "hot", "session_id": "s"})["matches"], "path"), "archive/sessions/s/notes/a.md")
		for _, path := range []string{"sessions/s/b", "archive/sessions/s/b"} {
			if message := a.fails(t, tea.ValidationError, "memory.file_store", map[string]any{"path": path, "content": "x"}); !strings.Contains(message, "session.restore") {
				t.Error(message)
			}
		}
		a.fails(t, tea.ValidationError, "memory.file_delete", map[string]any{"path": "notes/a.md", "session_id": "s"})

		restored := a.do(t, "session.restore", map[string]any{"session_id": "s", "ttl": 0})
		same(t, "restored", pick(restored, "changed", "status", "reason", "archived_at", "expires_at", "files_path"), []any{true, "active", "", nil, nil, "sessions/s/"})
		same(t, "restored twice", a.do(t, "session.restore", map[string]any{"session_id": "s", "ttl": 5})["changed"], false)
		same(t, "files", column(a.do(t, "memory.file_list", nil)["files"], "path"), "sessions/s/notes/a.md")
		same(t, "archived", pick(a.do(t, "session.archive", map[string]any{"session_id": "s"}), "changed", "reason"), []any{true, "manual"})
		a.do(t, "session.restore", map[string]any{"session_id": "s"})
		same(t, "archived", pick(a.do(t, "session.archive", map[string]any{"session_id": "s", "reason": "tidied up"}), "reason", "metadata"), []any{"tidied up", map[string]any{"topic": "pump"}})
	})
}

func TestSessionThatExpires(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		ids := func(params map[string]any) string {
			return column(a.do(t, "session.list", params)["sessions"], "session_id")
		}
		a.do(t, "session.create", map[string]any{"session_id": "short", "ttl": 1e-12})
		a.do(t, "session.create", map[string]any{"session_id": "long", "ttl": 1e9})
		same(t, "active", ids(map[string]any{"status": "active"}), "long")
		same(t, "expired", ids(map[string]any{"reason": "expired"}), "short")
		a.fails(t, tea.ValidationError, "memory.file_store", map[string]any{"path": "f", "content": "x", "session_id": "short"})
		same(t, "restored", pick(a.do(t, "session.restore", map[string]any{"session_id": "short", "ttl": 0}), "changed", "status"), []any{true, "active"})
		same(t, "active", ids(map[string]any{"status": "active"}), "long short")
	})
}

func TestSessionList(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		var created []string
		for i := range 7 {
			made := a.do(t, "session.create", map[string]any{"session_id": fmt.Sprint("s", i), "user_id": []string{"ann", "bob"}[i%2], "metadata": map[string]any{"n": i}})
			created = append(created, made["created_at"].(string))
		}
		a.do(t, "session.end", map[string]any{"session_id": "s2"})
		for _, test := range []struct {
			params map[string]any
			want   string
		}{
			{nil, "s6 s5 s4 s3 s2 s1 s0"},
			{map[string]any{"user_id": "bob"}, "s5 s3 s1"},
			{map[string]any{"user_id": ""}, ""},
			{map[string]any{"status": "archived"}, "s2"},
			{map[string]any{"status": "active", "user_id": "ann"}, "s6 s4 s0"},
			{map[string]any{"reason": "ended"}, "s2"},
			{map[string]any{"metadata": map[string]any{"n": []any{1, 4}}}, "s4 s1"},
			{map[string]any{"created_after": created[2], "created_before": created[5]}, "s4 s3 s2"},
			{map[string]any{"updated_after": "2999-01-01T00:00:00+02:00"}, ""},
		} {
			result := a.do(t, "session.list", test.params)
			same(t, fmt.Sprint(test.params), []any{column(result["sessions"], "session_id"), result["count"], result["next_cursor"]}, []any{test.want, int64(len(strings.Fields(test.want))), ""})
		}
		var pages []string
		for cursor := ""; ; {
			result := a.do(t, "session.list", map[string]any{"limit": 3, "cursor": cursor})
			pages = append(pages, column(result["sessions"], "session_id"))
			if cursor = result["next_cursor"].(string); cursor == "" {
				break
			}
			a.do(t, "session.create", nil)
		}
		same(t, "pages", pages, []string{"s6 s5 s4", "s3 s2 s1", "s0"})
	})
}

func TestSessionRefusals(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		a.do(t, "session.create", map[string]any{"session_id": "s"})
		for _, action := range []string{"session.get", "session.end", "session.archive", "session.restore"} {
			if message := a.fails(t, tea.NotFound, action, map[string]any{"session_id": "none"}); !strings.Contains(message, `"none"`) {
				t.Error(message)
			}
		}
		for action, params := range map[string]map[string]any{
			"session.create": {"ttl": -1}, "session.archive": {"session_id": "s", "reason": strings.Repeat("x", 201)}, "session.restore": {"session_id": "s", "ttl": -0.5}, "session.end": {"session_id": ""}, "session.get": {},
		} {
			a.fails(t, tea.ValidationError, action, params)
		}
		for _, params := range []map[string]any{
			{"session_id": "s"}, {"metadata": []any{1}}, {"metadata": "x"}, {"ttl": 1e300}, {"session_id": "a/b"}, {"user_id": strings.Repeat("x", 1001)}, {"user_id": "\xff"}, {"user_id": "\ufffd"},
		} {
			a.fails(t, tea.ValidationError, "session.create", params)
		}
		for _, params := range []map[string]any{{"status": "dead"}, {"limit": 0}, {"limit": 1001}, {"created_after": "yesterday"}, {"updated_before": "2026-01-01"}} {
			a.fails(t, tea.ValidationError, "session.list", params)
		}
		a.fails(t, tea.PermissionDenied, "session.create", map[string]any{"session_id": "%2e%2e"})
		same(t, "sessions", column(a.do(t, "session.list", nil)["sessions"], "session_id"), "s")
	})
}
