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
		a.must("data.create_table", map[string]any{"name": "Orders", "schema": map[string]any{"id": "int"}})
		a.equal("tables stay", fmt.Sprint(a.must("memory.sync", nil)["skipped_tables"]), "[orders]")
	})
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
