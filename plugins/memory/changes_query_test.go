package memory_test

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// The operation, version and key of stored rows could not be queried.
func TestChangesOfRowsCanBeQueried(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		a.do(t, "data.create_table", map[string]any{"name": "Pumps", "schema": map[string]any{"id": "int", "at": "timestamp", "state": "json"}, "primary_key": []any{"id"}})
		row := func(id int, at string) map[string]any {
			return map[string]any{"id": id, "at": at, "state": map[string]any{"on": true}}
		}
		a.do(t, "data.insert", map[string]any{"table": "pumps", "rows": []any{row(1, "2026-03-01T12:00:00Z"), row(2, "2026-03-01T12:00:00Z")}})
		a.do(t, "data.update", map[string]any{"table": "pumps", "rows": []any{map[string]any{"id": 1, "at": "2026-03-02T12:00:00Z"}}})
		a.do(t, "data.delete", map[string]any{"table": "pumps", "keys": []any{2}})
		changes := func() []string {
			t.Helper()
			all := []string{}
			for _, r := range a.do(t, "data.query", map[string]any{"sql": "SELECT * FROM pumps__changes ORDER BY _version"})["rows"].([]any) {
				all = append(all, strings.TrimSpace(fmt.Sprintln(pick(r.(map[string]any), "_op", "_version", "_pk", "id", "at")...)))
			}
			return all
		}
		same(t, "changes", changes(), []string{
			"I 1 [1] 1 2026-03-01T12:00:00Z", "I 2 [2] 2 2026-03-01T12:00:00Z", "U 3 [1] 1 2026-03-02T12:00:00Z", "D 4 [2] 2 <nil>",
		})
		same(t, "joined", a.do(t, "data.query", map[string]any{"sql": "SELECT p.id, max(c._version) AS version FROM Pumps p JOIN Pumps__changes c ON c.id = p.id GROUP BY p.id"})["rows"],
			any([]any{map[string]any{"id": int64(1), "version": int64(3)}}))
		same(t, "the columns of the table", a.do(t, "data.query", map[string]any{"table": "pumps"})["columns"], any([]any{"at", "id", "state"}))
		a.do(t, "data.consolidate", map[string]any{"table": "pumps"})
		same(t, "consolidated", len(changes()), 1)
		a.fails(t, tea.ValidationError, "data.query", map[string]any{"sql": "SELECT * FROM none__changes"})
	})
}
