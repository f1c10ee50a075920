package memory_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestGrep(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		for path, content := range map[string]string{
			"logs/a.log": "start\nERROR pump\nthe pump stops\nend", "logs/b.log": "error valve", "notes.md": "a 50% error\na 50x error", "sub/deep/c.log": "Error fan",
		} {
			a.do(t, "memory.file_store", map[string]any{"path": path, "content": content})
		}
		a.do(t, "memory.file_store", map[string]any{"path": "bin", "content_base64": base64.StdEncoding.EncodeToString([]byte("error\x00error"))})
		a.do(t, "session.create", map[string]any{"session_id": "s"})
		a.do(t, "memory.file_store", map[string]any{"path": "a.log", "content": "session error", "session_id": "s"})

		same(t, "a match", a.do(t, "memory.grep", map[string]any{"pattern": "pump", "context": 1, "after": 0, "limit": 1}), map[string]any{
			"matches": []any{map[string]any{"path": "logs/a.log", "line": int64(2), "column": int64(7), "text": "ERROR pump", "before": []any{"start"}, "after": []any{}}},
			"count":   int64(1), "files": int64(1), "files_searched": int64(1), "truncated": true,
		})
		for _, test := range []struct {
			params map[string]any
			want   string
		}{
			{map[string]any{"pattern": "error"}, "logs/b.log:1 notes.md:1 notes.md:2 sessions/s/a.log:1"},
			{map[string]any{"pattern": "error", "ignore_case": true}, "logs/a.log:2 logs/b.log:1 notes.md:1 notes.md:2 sessions/s/a.log:1 sub/deep/c.log:1"},
			{map[string]any{"pattern": "%50\\% e%"}, "notes.md:1"},
			{map[string]any{"pattern": "50_ error", "mode": "LIKE"}, "notes.md:1 notes.md:2"},
			{map[string]any{"pattern": "^the", "mode": "regex"}, "logs/a.log:3"},
			{map[string]any{"pattern": "^(error|Error) (v|f)", "mode": "regex", "path": "*.log"}, "logs/b.log:1 sub/deep/c.log:1"},
			{map[string]any{"pattern": "error", "path": "logs/", "ignore_case": true}, "logs/a.log:2 logs/b.log:1"},
			{map[string]any{"pattern": "error", "path": "logs/*.log"}, "logs/b.log:1"},
			{map[string]any{"pattern": "error", "path": "**/c.log", "ignore_case": true}, "sub/deep/c.log:1"},
			{map[string]any{"pattern": "error", "session_id": "s"}, "sessions/s/a.log:1"},
			{map[string]any{"pattern": "error", "session_id": "s", "path": "b*"}, ""},
			{map[string]any{"pattern": "no such line"}, ""},
		} {
			found := a.do(t, "memory.grep", test.params)
			var places []string
			for _, m := range found["matches"].([]any) {
				at := m.(map[string]any)
				places = append(places, fmt.Sprint(at["path"], ":", at["line"]))
			}
			same(t, fmt.Sprint(test.params), strings.Join(places, " "), test.want)
			same(t, "count", pick(found, "count", "truncated"), []any{int64(len(places)), false})
		}
		for _, params := range []map[string]any{
			{},
			{"pattern": ""},
			{"pattern": "a", "mode": "glob"},
			{"pattern": "(", "mode": "regex"},
			{"pattern": "(a)\\1", "mode": "regex"},
			{"pattern": "a", "context": 51},
			{"pattern": "a", "before": -1},
			{"pattern": "a", "limit": 0},
			{"pattern": "a", "max_bytes": 1 << 30},
			{"pattern": "a", "timeout_seconds": -1},
			{"pattern": "a", "path": "[a"},
			{"pattern": strings.Repeat("a", 5000)},
		} {
			a.fails(t, tea.ValidationError, "memory.grep", params)
		}
		a.fails(t, tea.NotFound, "memory.grep", map[string]any{"pattern": "a", "session_id": "none"})
	})
}

// However much there is to be found: an answer has its size.
func TestGrepIsBounded(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		a.do(t, "memory.file_store", map[string]any{"path": "f", "content": strings.Repeat("needle "+strings.Repeat("x", 1000)+"\n", 500)})
		found := a.do(t, "memory.grep", map[string]any{"pattern": "needle", "limit": 10000, "context": 50, "max_bytes": 100_000})
		size := 0
		for _, m := range found["matches"].([]any) {
			at := m.(map[string]any)
			for _, text := range append(append([]any{at["text"]}, at["before"].([]any)...), at["after"].([]any)...) {
				size += len(text.(string))
			}
		}
		same(t, "truncated", found["truncated"], true)
		if size < 50_000 || size > 101_000 {
			t.Errorf("the texts have %d bytes", size)
		}
		got := a.do(t, "memory.grep", map[string]any{"pattern": "needle", "timeout_seconds": 1e-9})
		same(t, "without time", pick(got, "count", "truncated"), []any{int64(0), true})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.try(ctx, "memory.grep", map[string]any{"pattern": "needle"}); !errors.Is(err, context.Canceled) && tea.AsError(err).Type != tea.Canceled {
			t.Errorf("a caller that gave up gets %v", err)
		}
	})
}

func TestSearchContentOfANamespace(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		for _, namespace := range []string{"", "acme"} {
			a.do(t, "ltm.store", map[string]any{"namespace": namespace, "key": "of <" + namespace + ">", "value": map[string]any{"n": 1}})
		}
		for _, namespace := range []string{"", "acme"} {
			got := a.do(t, "memory.search_content", map[string]any{"namespace": namespace, "source": "all", "fields": map[string]any{"$.n": 1}})
			same(t, namespace, []any{got["count"], got["results"].([]any)[0].(map[string]any)["path"]}, []any{int64(1), "of <" + namespace + ">"})
		}
	})
}

func TestSearchContent(t *testing.T) {
	t.Parallel()
	linkedAgents(t, bareHost, func(t *testing.T, a *agent) {
		for path, content := range map[string]string{
			"plant/pump-1.json": `{"name": "pump-1", "unit": {"site": "north"}, "temp": 71.5, "tags": ["hot", "wet"]}`,
			"plant/pump-2.json": `{"name": "pump-2", "unit": {"site": "south"}, "temp": 40}`,
			"log.jsonl":         "{\"name\": \"pump-1\", \"temp\": 70}\n{\"name\": \"pump-2\", \"temp\": 75}\n",
			"broken.json":       `{"name": `, "notes.md": `{"name": "pump-1"}`,
		} {
			a.do(t, "memory.file_store", map[string]any{"path": path, "content": content})
		}
		a.do(t, "ltm.store", map[string]any{"key": "incidents/1", "value": map[string]any{"name": "pump-1", "fix": "water"}})

		same(t, "by fields", a.do(t, "memory.search_content", map[string]any{"fields": map[string]any{"$.unit.site": "north"}}), map[string]any{
			"results": []any{map[string]any{"source": "files", "path": "plant/pump-1.json", "matches": []any{map[string]any{"path": "$.unit.site", "value": "north"}}}},
			"count":   int64(1), "files_searched": int64(4), "files_skipped": int64(1), "truncated": false,
		})
		with := func(path, op string, value any) map[string]any {
			return map[string]any{"path": path, "op": op, "value": value}
		}
		for _, test := range []struct {
			params map[string]any
			want   string
		}{
			{map[string]any{"fields": map[string]any{"$.name": "pump-1"}}, "log.jsonl:1 plant/pump-1.json"},
			{map[string]any{"fields": map[string]any{"$.name": "pump-1", "$.temp": 70}}, "log.jsonl:1"},
			{map[string]any{"conditions": []any{with("$.temp", "gt", 70)}}, "log.jsonl:2 plant/pump-1.json"},
			{map[string]any{"conditions": []any{with("$.temp", ">=", 70), with("$.name", "endswith", "-1")}}, "log.jsonl:1 plant/pump-1.json"},
			{map[string]any{"conditions": []any{with("$.tags[*]", "eq", "wet")}}, "plant/pump-1.json"},
			{map[string]any{"conditions": []any{with("$.unit", "exists", false)}}, "log.jsonl:1 log.jsonl:2"},
			{map[string]any{"conditions": []any{with("$.name", "in", []any{"pump-2", "x"})}, "path": "plant/"}, "plant/pump-2.json"},
			{map[string]any{"fields": map[string]any{"$.name": "pump-1"}, "source": "ltm"}, "incidents/1"},
			{map[string]any{"fields": map[string]any{"$.name": "pump-1"}, "source": "all"}, "log.jsonl:1 plant/pump-1.json incidents/1"},
			{map[string]any{"fields": map[string]any{"$.name": "pump-1"}, "source": "all", "path": "incidents/*"}, "incidents/1"},
		} {
			var places []string
			found := a.do(t, "memory.search_content", test.params)
			for _, r := range found["results"].([]any) {
				one := r.(map[string]any)
				place := one["path"].(string)
				if line := one["line"]; line != nil {
					place += fmt.Sprint(":", line)
				}
				places = append(places, place)
			}
			same(t, fmt.Sprint(test.params), strings.Join(places, " "), test.want)
			same(t, "count", pick(found, "count", "truncated"), []any{int64(len(places)), false})
		}
		limited := a.do(t, "memory.search_content", map[string]any{"fields": map[string]any{"$.name": "pump-1"}, "limit": 1, "source": "all"})
		same(t, "limited", pick(limited, "count", "truncated"), []any{int64(1), true})
		limited = a.do(t, "memory.search_content", map[string]any{"fields": map[string]any{"$.fix": "water"}, "timeout_seconds": 1e-9, "source": "all"})
		same(t, "without time", pick(limited, "count", "truncated"), []any{int64(0), true})
		for _, params := range []map[string]any{
			{},
			{"fields": map[string]any{}},
			{"fields": map[string]any{"name": 1}},
			{"fields": map[string]any{"$..name": 1}},
			{"conditions": []any{with("$.a", "like", "x")}},
			{"conditions": []any{with("$.a", "in", "x")}},
			{"conditions": []any{map[string]any{"op": "eq"}}},
			{"fields": map[string]any{"$.a": 1}, "source": "web"},
			{"fields": map[string]any{"$.a": 1}, "limit": 0},
		} {
			a.fails(t, tea.ValidationError, "memory.search_content", params)
		}
	})
}
