package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestAssembleContextOfSessions(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		for id, user := range map[string]string{"s1": "ann", "s2": "ann", "s3": "bob"} {
			a.do(t, "session.create", map[string]any{"session_id": id, "user_id": user, "metadata": map[string]any{"about": "the pump"}})
			a.file(t, "sessions/"+id+"/a.md", "pump")
			a.entry(t, "session/"+id+"/a", "pump")
		}
		of := func(layer map[string]any) []string {
			t.Helper()
			found := []string{}
			for _, s := range assembled(t, a, map[string]any{"query": "pump", "config": with(layers(layer), map[string]any{"threshold": 0.5})}) {
				found = append(found, strings.Fields(s)[2])
			}
			return found
		}
		session := func(id string) map[string]any { return map[string]any{"scope": "session", "entity_id": id} }
		same(t, "one", of(session("s1")), []string{"session/s1/a", "sessions/s1", "sessions/s1/a.md"})
		same(t, "of a user", len(of(map[string]any{"scope": "session", "user_id": "ann"})), 6)
		same(t, "all", len(of(map[string]any{"scope": "session"})), 9)
		same(t, "none", of(session("nobody")), []string{})

		a.do(t, "session.archive", map[string]any{"session_id": "s1"})
		same(t, "archived", of(session("s1")), []string{})
		same(t, "of a user", len(of(map[string]any{"scope": "session", "user_id": "ann"})), 3)
		same(t, "all", len(of(map[string]any{"scope": "session"})), 6)
		for _, directory := range []string{".", "sessions", "sessions/s1", "archive", "archive/sessions", "archive/sessions/s1", "session/s1", "session"} {
			for _, path := range of(map[string]any{"scope": "directory", "directory": directory}) {
				if strings.Contains(path, "s1") {
					t.Errorf("%s gives %s of an archived session", directory, path)
				}
			}
		}
		same(t, "everywhere", len(assembled(t, a, map[string]any{"query": "pump", "config": map[string]any{"threshold": 0}})), 6)
		a.do(t, "session.restore", map[string]any{"session_id": "s1"})
		same(t, "restored", len(of(session("s1"))), 3)
		a.do(t, "session.create", map[string]any{"session_id": "short", "ttl": 1e-6})
		a.entry(t, "session/short/a", "pump")
		same(t, "expired", of(session("short")), []string{})
	})
}

// A context for a user had the files, entries and metadata of other users'
// sessions.
func TestAContextForAUserHasNoSessionsOfOthers(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		for id, user := range map[string]string{"s1": "ann", "s2": "bob", "s3": ""} {
			a.do(t, "session.create", map[string]any{"session_id": id, "user_id": user, "metadata": map[string]any{"about": "the pump"}})
			a.file(t, "sessions/"+id+"/a.md", "pump")
			a.entry(t, "session/"+id+"/a", "pump")
		}
		check := func(method string) {
			t.Helper()
			of := func(user string, layers ...any) []string {
				t.Helper()
				config := map[string]any{"threshold": 0, "similarity": method}
				if len(layers) > 0 {
					config["layers"] = layers
				}
				found := []string{}
				for _, s := range assembled(t, a, map[string]any{"query": "pump", "user_id": user, "config": config}) {
					found = append(found, strings.Fields(s)[2])
				}
				slices.Sort(found)
				return found
			}
			own := []string{"session/s1/a", "session/s3/a", "sessions/s1", "sessions/s1/a.md", "sessions/s3", "sessions/s3/a.md"}
			same(t, "everywhere", of("ann"), own)
			same(t, "sessions", of("ann", map[string]any{"scope": "session"}), own)
			same(t, "of the user", of("ann", map[string]any{"scope": "session", "user_id": "ann"}), []string{"session/s1/a", "sessions/s1", "sessions/s1/a.md"})
			same(t, "a folder", of("ann", map[string]any{"scope": "directory", "directory": "."}), []string{"session/s1/a", "session/s3/a", "sessions/s1/a.md", "sessions/s3/a.md"})
			same(t, "another folder", of("ann", map[string]any{"scope": "app", "directory": "sessions/s2"}), []string{})
			same(t, "for nobody in particular", len(of("")), 9)
		}
		check("bm25")
		a.do(t, "memory.backfill_embeddings", nil)
		check("cosine")
		for _, layer := range []map[string]any{{"scope": "session", "entity_id": "s2"}, {"scope": "session", "user_id": "bob"}, {"scope": "session", "user_id": "{who}"}} {
			a.fails(t, tea.PermissionDenied, "context.assemble", map[string]any{"query": "pump", "user_id": "ann", "config": layers(layer), "variables": map[string]any{"who": "bob"}})
		}
	})
}

func TestAssembleContextSeesEveryChange(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		config := with(layers(map[string]any{"scope": "directory", "directory": "d"}), map[string]any{"threshold": 0.31})
		check := func(what string, want ...string) {
			t.Helper()
			found := []string{}
			for _, s := range assembled(t, a, map[string]any{"query": "pump", "config": config}) {
				found = append(found, strings.Fields(s)[2])
			}
			if want == nil {
				want = []string{}
			}
			same(t, what, found, want)
		}
		check("an empty memory")
		a.file(t, "d/k.md", "pump")
		check("stored", "d/k.md")
		a.file(t, "d/b.md", "pump pump")
		a.file(t, "d/c.md", "valve")
		check("more", "d/b.md", "d/k.md")
		a.file(t, "d/k.md", "lunch")
		a.file(t, "d/c.md", "pump")
		check("changed", "d/b.md", "d/c.md")
		a.do(t, "memory.file_delete", map[string]any{"path": "d/b.md"})
		check("removed", "d/c.md")
		a.do(t, "memory.file_delete", map[string]any{"path": "d/c.md"})
		a.file(t, "d/e.md", "pump")
		check("one removed, one stored", "d/e.md")
		a.do(t, "memory.file_store", map[string]any{"path": "d/e.md", "content_base64": "AHB1bXA="})
		check("no text any more")
		a.entry(t, "d/k", map[string]any{"of": []any{"pump", 5}})
		check("an entry", "d/k")
		a.do(t, "ltm.store", map[string]any{"key": "d/k", "value": "pump", "ttl": 1e-12})
		check("expired")
	})
}

func TestAssembleContextOfTables(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		a.do(t, "data.create_table", map[string]any{"name": "readings", "schema": map[string]any{"id": "int", "pump": "string", "bar": "float"}, "primary_key": []any{"id"}})
		var rows []any
		for i := range 30 {
			rows = append(rows, map[string]any{"id": i, "pump": []string{"north | main", "south"}[i%2], "bar": float64(i) / 2})
		}
		a.do(t, "data.insert", map[string]any{"table": "readings", "rows": rows})
		a.file(t, "d/pump.md", strings.Repeat("The pump in the north. ", 100))
		tabular := map[string]any{"table": "pressure", "sql": "SELECT id, pump, bar FROM readings WHERE pump = {which} AND bar < {most} ORDER BY id -- not {this}"}
		variables := map[string]any{"which": "north | main", "most": 2.5}
		got := a.do(t, "context.assemble", map[string]any{"config": map[string]any{"tabular": []any{tabular}}, "variables": variables})
		same(t, "context", got["context"], "## table: pressure\n\n| id | pump | bar |\n| --- | --- | --- |\n| 0 | north \\| main | 0.0 |\n| 2 | north \\| main | 1.0 |\n| 4 | north \\| main | 2.0 |")
		same(t, "tabular", got["tabular"], any([]any{map[string]any{
			"table": "pressure", "columns": []any{"id", "pump", "bar"}, "row_count": int64(3), "truncated": false, "rows": []any{
				map[string]any{"id": int64(0), "pump": "north | main", "bar": 0.}, map[string]any{"id": int64(2), "pump": "north | main", "bar": 1.}, map[string]any{"id": int64(4), "pump": "north | main", "bar": 2.},
			},
		}}))
		same(t, "the rest", []any{got["sources"], got["truncated"], got["tokens"]}, []any{[]any{}, false, int64(tokens.Count(got["context"].(string)))})

		both := with(layers(map[string]any{"scope": "directory", "directory": "d"}), map[string]any{"max_tokens": 200, "tabular": []any{map[string]any{"table": "readings", "max_rows": 25}}})
		got = a.do(t, "context.assemble", map[string]any{"query": "pump", "config": both})
		text := got["context"].(string)
		if !strings.HasPrefix(text, "## table: readings (first ") || !strings.Contains(text, " of 25 rows)\n\n| bar | id |") || !strings.Contains(text, "## directory: d/pump.md\n\nThe pump in") {
			t.Errorf("the context is\n%s", text)
		}
		if n := tokens.Count(text); n > 200 || n < 150 || got["truncated"] != true {
			t.Errorf("%d tokens of 200, truncated %v", n, got["truncated"])
		}
		table := got["tabular"].([]any)[0].(map[string]any)
		same(t, "the answer is whole", []any{table["row_count"], table["truncated"]}, []any{int64(25), true})
		none := a.do(t, "context.assemble", map[string]any{"config": map[string]any{"tabular": []any{map[string]any{"table": "readings", "sql": "SELECT id FROM readings WHERE bar > 1000"}}}})
		same(t, "no rows", none["context"], "## table: readings\n\n(no rows)")
		one := a.do(t, "context.assemble", map[string]any{"config": with(both, map[string]any{"max_tokens": 1})})
		same(t, "one token", []any{one["context"], one["truncated"]}, []any{"", true})

		for want, sql := range map[tea.ErrorType]string{tea.PermissionDenied: "SELECT * FROM documents", tea.ValidationError: "DELETE FROM readings"} {
			result, err := a.try(t.Context(), "context.assemble", map[string]any{"config": map[string]any{"tabular": []any{map[string]any{"table": "x", "sql": sql}}}})
			if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied && e.Type != tea.ValidationError {
				t.Errorf("%s: got %v and %v, want a %s", sql, result, err, want)
			}
		}
		a.fails(t, tea.ValidationError, "context.assemble", map[string]any{
			"config": map[string]any{"tabular": []any{tabular}}, "variables": map[string]any{"which": []any{}, "most": 1},
		})
		a.fails(t, tea.ValidationError, "context.assemble", map[string]any{"config": map[string]any{"tabular": []any{tabular}}})
		injected := a.do(t, "context.assemble", map[string]any{"config": map[string]any{"tabular": []any{tabular}}, "variables": map[string]any{"which": "' OR 1=1 --", "most": 1}})
		same(t, "an injection", injected["tabular"].([]any)[0].(map[string]any)["rows"], any([]any{}))
	})
}

func TestAssembleContextWhileFilesChange(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		a.do(t, "session.create", map[string]any{"session_id": "s"})
		var group sync.WaitGroup
		for worker := range 4 {
			group.Go(func() {
				for i := range 12 {
					path := fmt.Sprintf("sessions/s/%d.md", (i+worker)%5)
					for action, params := range map[string]map[string]any{
						"memory.file_store": {"path": path, "content": fmt.Sprintf("pump %d %d", worker, i)}, "memory.file_delete": {"path": path},
						"ltm.store":        {"key": "session/s/a", "value": i},
						"session.restore":  {"session_id": "s"},
						"context.assemble": {"query": "pump", "config": map[string]any{"max_tokens": 100}},
					} {
						_, err := a.try(t.Context(), action, params)
						if e := tea.AsError(err); e != nil && e.Type != tea.ValidationError {
							t.Errorf("%s: %v", action, err)
						}
					}
					if i%4 == worker {
						a.do(t, "session.archive", map[string]any{"session_id": "s"})
					}
				}
			})
		}
		group.Wait()
		a.do(t, "session.restore", map[string]any{"session_id": "s"})
		a.do(t, "memory.file_store", map[string]any{"path": "sessions/s/last.md", "content": "pump"})
		listed := []string{}
		for _, f := range a.do(t, "memory.file_list", nil)["files"].([]any) {
			listed = append(listed, f.(map[string]any)["path"].(string))
		}
		found := []string{}
		for _, s := range a.do(t, "context.assemble", map[string]any{"query": "pump", "config": map[string]any{"threshold": 0}})["sources"].([]any) {
			if o := s.(map[string]any); o["source"] == "file" {
				found = append(found, o["path"].(string))
			}
		}
		slices.Sort(found)
		same(t, "in the end", found, listed)
	})
}

func TestAssembleContextOfANamespace(t *testing.T) {
	t.Parallel()
	linkedAgents(t, embedder, func(t *testing.T, a *agent) {
		for _, namespace := range []string{"", "acme"} {
			a.do(t, "ltm.store", map[string]any{"namespace": namespace, "key": "user/7", "value": "the pump of <" + namespace + ">"})
			a.do(t, "ltm.store", map[string]any{"namespace": namespace, "key": "user/7/same", "value": "a valve"})
		}
		a.file(t, "user/7/a.md", "pump")
		check := func(similarity string) {
			t.Helper()
			for _, namespace := range []string{"", "acme"} {
				got := a.do(t, "context.assemble", map[string]any{"query": "pump valve", "namespace": namespace, "config": with(
					layers(map[string]any{"scope": "user", "entity_id": "7"}), map[string]any{"threshold": 0, "similarity": similarity})})
				text := got["context"].(string)
				if len(sources(got)) != 3 || strings.Count(text, "the pump of <") != 1 || !strings.Contains(text, "the pump of <"+namespace+">") {
					t.Errorf("namespace %q, by %s: the context is\n%s", namespace, similarity, text)
				}
			}
		}
		check("bm25")
		a.do(t, "memory.backfill_embeddings", map[string]any{"namespace": "acme"})
		check("cosine")
		a.do(t, "memory.backfill_embeddings", nil)
		check("cosine")
		none := a.do(t, "context.assemble", map[string]any{"query": "valve", "namespace": "other", "config": map[string]any{"similarity": "bm25"}})
		same(t, "another namespace", sources(none), []string{})
	})
}

// Folders such as firms/ID, which other programs use, ranked as app, and a layer of
// the scope did not have them.
func TestAssembleContextOfPluralFolders(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		for _, name := range []string{"firms/acme/a", "matters/m1/a", "users/7/a", "directories/docs/2026/03/a", "firm/acme/b", "other/a"} {
			a.file(t, name+".md", "pump")
			a.entry(t, name, "pump")
		}
		find := func(config map[string]any) []string {
			t.Helper()
			found := []string{}
			for _, s := range assembled(t, a, map[string]any{"query": "pump", "config": with(config, map[string]any{"threshold": 0})}) {
				found = append(found, strings.Join(strings.Fields(s)[:3], " "))
			}
			slices.Sort(found)
			return found
		}
		same(t, "everywhere", find(map[string]any{}), []string{
			"file app other/a.md", "file directory directories/docs/2026/03/a.md", "file firm firm/acme/b.md", "file firm firms/acme/a.md", "file matter matters/m1/a.md", "file user users/7/a.md",
			"ltm app other/a", "ltm directory directories/docs/2026/03/a", "ltm firm firm/acme/b", "ltm firm firms/acme/a", "ltm matter matters/m1/a", "ltm user users/7/a",
		})
		same(t, "a firm", find(layers(map[string]any{"scope": "firm", "entity_id": "acme"})), []string{"file firm firm/acme/b.md", "file firm firms/acme/a.md", "ltm firm firm/acme/b", "ltm firm firms/acme/a"})
		same(t, "a directory", find(layers(map[string]any{"scope": "directory", "directory": "docs/2026"})), []string{"file directory directories/docs/2026/03/a.md", "ltm directory directories/docs/2026/03/a"})
	})
}

func TestALayerWithoutAnythingIsNoted(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		a.file(t, "firm/acme/a.md", "pump")
		got := a.do(t, "context.assemble", map[string]any{"query": "valve", "config": layers(
			map[string]any{"scope": "firm", "entity_id": "acme"}, map[string]any{"scope": "firm", "entity_id": "acne"}, map[string]any{"scope": "session", "user_id": "nobody"},
		)})
		same(t, "notes", got["notes"], any([]any{
			"layer 2 (scope firm) matches nothing: there are no files below firm/acne/ or firms/acne/ and no entries", "layer 3 (scope session) matches nothing: there is no active session",
		}))
		same(t, "none", a.do(t, "context.assemble", map[string]any{"query": "pump"})["notes"], nil)
	})
}
