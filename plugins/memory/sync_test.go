package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestSync(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		shared := t.TempDir()
		device := func() *opened {
			return mustOpen(t, map[string]any{"path": t.TempDir(), "engine": engine, "sync": map[string]any{"path": shared, "engine": "sqlite"}})
		}
		a, b := device(), device()
		defer a.close()
		defer b.close()
		a.must("ltm.store", map[string]any{"namespace": "team", "key": "k", "value": "harbor one"})
		a.must("vector.store", map[string]any{"ids": []string{"v"}, "texts": []string{"first"}, "embeddings": [][]float64{{1, 0}}})
		a.must("memory.file_store", map[string]any{"path": "note.md", "content": "# text"})
		a.must("session.create", map[string]any{"session_id": "s"})
		a.must("memory.sync", nil)
		r := b.must("memory.sync", map[string]any{"max_bytes_per_second": 1_000_000})
		b.equal("pulled", r["pulled"], int64(4))
		b.equal("a value", b.must("ltm.retrieve", map[string]any{"namespace": "team", "key": "k"})["value"], "harbor one")
		b.equal("found", len(b.must("ltm.search", map[string]any{"namespace": "team", "query": "harbor"})["results"].([]any)), 1)
		b.equal("near", len(b.must("vector.query", map[string]any{"embedding": []float64{1, 0}})["results"].([]any)), 1)
		b.equal("a file", b.must("memory.file_retrieve", map[string]any{"path": "note.md"})["content"], "# text")
		b.equal("a session", b.must("session.get", map[string]any{"session_id": "s"})["success"], true)
		b.must("ltm.delete", map[string]any{"namespace": "team", "key": "k"})
		b.must("memory.sync", nil)
		a.equal("deleted", a.must("memory.sync", nil)["deleted_locally"], int64(1))
		a.equal("nothing to do", a.must("memory.sync", nil)["bytes"], int64(0))
	})
}

// A row of any size is synchronised and is in archives.
func TestLargeRows(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	eachEngine(t, func(t *testing.T, engine string) {
		if engine == "sqlite" {
			withoutRaceDetector(t)
		}
		dir := t.TempDir()
		a := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": engine, "archives": dir, "sync": map[string]any{"path": t.TempDir(), "engine": "sqlite"}})
		defer a.close()
		a.must("data.create_table", map[string]any{"name": "texts", "primary_key": []string{"id"}, "schema": map[string]any{"id": "int", "text": "string"}})
		a.must("data.insert", map[string]any{"table": "texts", "rows": []map[string]any{{"id": 1, "text": "small"}, {"id": 2, "text": strings.Repeat("x", 17<<20)}, {"id": 3, "text": strings.Repeat("y", 2<<20)}}})
		a.equal("pushed", a.must("memory.sync", nil)["pushed"], int64(3))
		a.must("memory.export", map[string]any{"path": "a.teamem"})
		b := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": engine, "archives": dir})
		defer b.close()
		b.must("memory.restore", map[string]any{"path": "a.teamem"})
		b.equal("rows", fmt.Sprint(b.must("data.query", map[string]any{"sql": "SELECT id FROM texts ORDER BY id"})["rows"]), "[map[id:1] map[id:2] map[id:3]]")
	})
}

func TestSyncOfTables(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		shared := t.TempDir()
		device := func(dir string) *opened {
			return mustOpen(t, map[string]any{"path": dir, "engine": engine, "sync": map[string]any{"path": shared, "engine": "sqlite"}})
		}
		dir := t.TempDir()
		a, b := device(dir), device(t.TempDir())
		defer b.close()
		query := func(o *opened) string {
			return fmt.Sprint(o.must("data.query", map[string]any{"sql": "SELECT id, site, value FROM Sensors ORDER BY id"})["rows"])
		}
		insert := func(o *opened, rows ...map[string]any) {
			o.must("data.insert", map[string]any{"table": "Sensors", "rows": rows, "on_conflict": "replace"})
		}
		row := func(id int, site string) map[string]any { return map[string]any{"id": id, "site": site, "value": 0.5} }
		a.must("data.create_table", map[string]any{"name": "Sensors", "primary_key": []string{"id"}, "schema": map[string]any{"id": "int", "site": "string", "value": "float"}})
		a.must("data.create_table", map[string]any{"name": "Log", "schema": map[string]any{"text": "string"}})
		insert(a, row(1, "a"), row(2, "a"), row(3, "a"), row(4, "a"))
		r := a.must("memory.sync", nil)
		a.equal("pushed", r["pushed"], int64(4))
		a.equal("a table without a key", fmt.Sprint(r["skipped_tables"]), "[log]")
		b.equal("pulled", b.must("memory.sync", nil)["pulled"], int64(4))
		b.equal("rows", query(b), query(a))
		// Each device changes and deletes rows, one of them both.
		insert(a, row(1, "changed by a"), row(2, "conflict a"), row(5, "new"))
		a.must("data.delete", map[string]any{"table": "Sensors", "keys": []int{3}})
		b.must("data.update", map[string]any{"table": "Sensors", "keys": []int{2}, "set": map[string]any{"site": "conflict b"}})
		b.must("data.delete", map[string]any{"table": "Sensors", "keys": []int{4}})
		a.must("memory.sync", nil)
		r = b.must("memory.sync", map[string]any{"conflicts": "local"})
		b.equal("conflicts", fmt.Sprint(r["resolved"]), `[map[feed:rows key:[2] space:sensors winner:local]]`)
		b.equal("pulled", r["pulled"], int64(2))
		b.equal("deleted", fmt.Sprint(r["deleted_locally"], r["deleted_remotely"]), "1 1")
		a.equal("no conflict", a.must("memory.sync", nil)["conflicts"], int64(0))
		a.equal("rows", query(a), "[map[id:1 site:changed by a value:0.5] map[id:2 site:conflict b value:0.5] map[id:5 site:new value:0.5]]")
		b.equal("rows", query(b), query(a))
		a.must("data.consolidate", map[string]any{"table": "Sensors"})
		a.equal("consolidated", a.must("memory.sync", nil)["bytes"], int64(0))
		a.must("data.delete", map[string]any{"table": "Sensors", "keys": []int{1}})
		a.must("data.consolidate", map[string]any{"table": "Sensors"})
		a.close()
		a = device(dir)
		defer a.close()
		a.equal("opened again", a.must("memory.sync", nil)["deleted_remotely"], int64(1))
		b.must("memory.sync", nil)
		b.equal("rows", query(b), query(a))
		b.must("data.create_table", map[string]any{"name": "Other", "primary_key": []string{"id"}, "schema": map[string]any{"id": "int"}})
		b.must("memory.sync", nil)
		c := device(t.TempDir())
		defer c.close()
		c.must("data.create_table", map[string]any{"name": "other", "primary_key": []string{"id"}, "schema": map[string]any{"id": "string"}})
		r = c.must("memory.sync", nil)
		if refused := fmt.Sprint(r["refused"]); !strings.Contains(refused, `column "id" is string not null, not int not null`) {
			t.Error("two tables that differ: ", refused)
		}
		c.equal("rows", query(c), query(a))
	})
}

// A sync with a limit takes at least the time that its bytes need.
func TestSyncLimitsTheBandwidth(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	device := func(sync map[string]any) *opened {
		sync["path"], sync["engine"] = shared, "sqlite"
		return mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "sync": sync})
	}
	a, b := device(map[string]any{}), device(map[string]any{"max_bytes_per_second": 400_000})
	defer a.close()
	defer b.close()
	for i := range 4 {
		a.must("ltm.store", map[string]any{"key": fmt.Sprint(i), "value": strings.Repeat("x", 50_000)})
	}
	limited(t, a, map[string]any{"max_bytes_per_second": 400_000})
	limited(t, b, nil)
}

func limited(t *testing.T, o *opened, params map[string]any) {
	t.Helper()
	began := time.Now()
	bytes, _ := o.must("memory.sync", params)["bytes"].(int64)
	if least := time.Duration(bytes) * time.Second / 400_000; bytes < 200_000 || time.Since(began) < least {
		t.Errorf("%d bytes in %v, want at least %v", bytes, time.Since(began), least)
	}
}

func TestSyncSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for want, sync := range map[string]any{
		"settings.memory.sync is not set": map[string]any{},
		"this memory itself":              map[string]any{"path": dir},
		"the name of an action":           map[string]any{"path": t.TempDir(), "conflicts": "merge"},
	} {
		o := mustOpen(t, map[string]any{"path": dir, "engine": "sqlite", "sync": sync})
		if _, err := o.call("memory.sync", nil); typeOf(err) != tea.ValidationError || !contains(err, want) {
			t.Errorf("%v: %v", sync, err)
		}
		o.close()
	}
}

func TestSyncInTheBackground(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	device := func(sync map[string]any) *opened {
		sync["path"], sync["engine"] = shared, "sqlite"
		return mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "sync": sync})
	}
	a := device(map[string]any{"background": true, "delay": 0})
	a.must("ltm.store", map[string]any{"key": "soon", "value": 1})
	status := func() map[string]any { return a.must("memory.inspect", nil)["sync"].(map[string]any) }
	for s := status(); s["pushed"] != int64(1); s = status() {
		if s["state"] == "failing" {
			t.Fatal(s)
		}
		<-time.After(time.Millisecond)
	}
	a.close()
	// A process that ends soon synchronises its last changes.
	b := device(map[string]any{"background": true, "delay": 3600})
	b.must("ltm.store", map[string]any{"key": "late", "value": 2})
	b.close()
	c := device(map[string]any{})
	defer c.close()
	c.must("memory.sync", nil)
	c.equal("what was stored soon after", c.must("ltm.retrieve", map[string]any{"key": "soon"})["value"], int64(1))
	c.equal("what was stored last", c.must("ltm.retrieve", map[string]any{"key": "late"})["value"], int64(2))
	if _, there := c.must("memory.inspect", nil)["sync"]; there {
		t.Error("a status without synchronising in the background")
	}
}

// A record that was refused stays in the status when others are synchronised later.
func TestSyncInTheBackgroundRemembersWhatWasRefused(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	other := mustOpen(t, map[string]any{"path": shared, "engine": "sqlite"})
	other.must("vector.store", map[string]any{"ids": []string{"x"}, "embeddings": [][]float64{{1, 0, 0}}})
	other.close()
	a := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "sync": map[string]any{"path": shared, "engine": "sqlite", "background": true, "delay": 0, "interval": 3600}})
	defer a.close()
	a.must("vector.store", map[string]any{"ids": []string{"v"}, "embeddings": [][]float64{{1, 0}}})
	for n := range int64(3) {
		a.must("ltm.store", map[string]any{"key": fmt.Sprint(n), "value": 1})
		status := func() map[string]any { return a.must("memory.inspect", nil)["sync"].(map[string]any) }
		s := status()
		for ; s["pushed"] != n+1 || s["state"] != "waiting"; s = status() {
			if s["state"] == "failing" {
				t.Fatal(s)
			}
			<-time.After(time.Millisecond)
		}
		if refused := fmt.Sprint(s["refused"]); !strings.Contains(refused, `"v"`) {
			t.Errorf("after %d entries: %s", n+1, refused)
		}
	}
}

func TestSyncInTheBackgroundSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, sync := range map[string]any{
		"with the url or path":       map[string]any{"background": true},
		"only a call of memory.sync": map[string]any{"background": true, "path": t.TempDir(), "conflicts": "merge", "merge": "sum"},
	} {
		if _, err := openBundle(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "sync": sync}); typeOf(err) != tea.ValidationError || !contains(err, want) {
			t.Errorf("%v: %v", sync, err)
		}
	}
}

// TestOfflineFallback uses a memory whose server cannot be reached.
func TestOfflineFallback(t *testing.T) {
	t.Parallel()
	offline := memory.WithBackend(store.Backend{Name: "offline", Open: func(context.Context, store.Config) (*store.Stores, error) {
		return nil, tea.Errorf(tea.ConnectionError, "no network")
	}})
	for name, ltm := range map[string]string{"ltm": `{"offline_fallback": true}`, "storage": `{"storage": {"enable_sync": true}}`} {
		instance, err := teatest.Linked(memory.Bundle(offline)).Open(t.Context(), tea.Settings{
			"memory": json.RawMessage(fmt.Sprintf(`{"path": %q, "url": "offline://host"}`, t.TempDir())), "ltm": json.RawMessage(ltm), "ltm_backend": json.RawMessage(`"offline"`),
		})
		if err != nil {
			t.Fatal(err)
		}
		o := &opened{t: t, instance: instance}
		o.must("ltm.store", map[string]any{"key": "k", "value": 1})
		o.equal(name, o.must("ltm.retrieve", map[string]any{"key": "k"})["value"], int64(1))
		for s := map[string]any{}; s["state"] != "failing"; s = o.must("memory.inspect", nil)["sync"].(map[string]any) {
			if e, _ := s["error"].(string); e != "" && !strings.Contains(e, "no network") {
				t.Fatal(s)
			}
			<-time.After(time.Millisecond)
		}
		o.close()
	}
}
