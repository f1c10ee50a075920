package memory_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// copyOf returns a copy of a folder whose memory is closed.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// restoreFolder replaces a folder by a copy.
func restoreFolder(t *testing.T, copied, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
}

// storeEach stores something of each kind under a name, or changes it.
func (o *opened) storeEach(name string, version int) {
	o.t.Helper()
	text := fmt.Sprint(version)
	o.must("ltm.store", map[string]any{"key": name, "value": text})
	o.must("vector.store", map[string]any{"ids": []string{name}, "texts": []string{text}, "embeddings": [][]float64{{1, float64(version)}}})
	o.must("memory.file_store", map[string]any{"path": name + ".md", "content": text})
	if version == 1 {
		o.must("session.create", map[string]any{"session_id": name})
	} else {
		o.must("session.archive", map[string]any{"session_id": name})
	}
	o.must("data.create_table", map[string]any{"name": "Rows", "primary_key": []string{"id"}, "schema": map[string]any{"id": "string", "v": "string"}})
	o.must("data.insert", map[string]any{"table": "Rows", "rows": []map[string]any{{"id": name, "v": text}}, "on_conflict": "replace"})
}

// deleteEach deletes what storeEach stores, except the session.
func (o *opened) deleteEach(name string) {
	o.t.Helper()
	o.must("ltm.delete", map[string]any{"key": name})
	o.must("vector.delete", map[string]any{"ids": []string{name}})
	o.must("memory.file_delete", map[string]any{"path": name + ".md"})
	o.must("data.delete", map[string]any{"table": "Rows", "keys": []string{name}})
}

// everything returns what is stored: its version by kind and name.
func (o *opened) everything() map[string]string {
	o.t.Helper()
	all := map[string]string{}
	for _, e := range o.must("ltm.list", nil)["entries"].([]any) {
		entry := e.(map[string]any)
		all[fmt.Sprint("entry ", entry["key"])] = fmt.Sprint(entry["value"])
	}
	for _, e := range o.must("vector.query", map[string]any{"embedding": []float64{1, 0}, "k": 1000})["results"].([]any) {
		item := e.(map[string]any)
		all[fmt.Sprint("vector ", item["id"])] = fmt.Sprint(item["text"])
	}
	for _, e := range o.must("memory.file_list", nil)["files"].([]any) {
		path := e.(map[string]any)["path"].(string)
		all["file "+path] = fmt.Sprint(o.must("memory.file_retrieve", map[string]any{"path": path})["content"])
	}
	for _, e := range o.must("session.list", nil)["sessions"].([]any) {
		id := e.(map[string]any)["session_id"].(string)
		all["session "+id] = map[any]string{"active": "1", "archived": "2"}[e.(map[string]any)["status"]]
	}
	for _, e := range o.must("data.query", map[string]any{"sql": "SELECT id, v FROM Rows"})["rows"].([]any) {
		row := e.(map[string]any)
		all[fmt.Sprint("row ", row["id"])] = fmt.Sprint(row["v"])
	}
	return all
}

func versionsOf(names map[string]string) map[string]string {
	all := map[string]string{}
	for name, version := range names {
		for _, kind := range []string{"entry ", "vector ", "session ", "row "} {
			all[kind+name] = version
		}
		all["file "+name+".md"] = version
	}
	return all
}

// TestSyncWithAnOlderCopyOfTheOtherMemoryDeletedNewerRecords puts an older copy of
// the shared folder back, with and without further writes before devices notice.
func TestSyncWithAnOlderCopyOfTheOtherMemoryDeletedNewerRecords(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	eachEngine(t, func(t *testing.T, engine string) {
		for hub, all := range map[string][]int{"sqlite": {0, 6}, "duckdb": {6}} {
			if !slices.Contains(engines(), hub) {
				continue // this build has no DuckDB
			}
			for _, written := range all {
				t.Run(fmt.Sprint(hub, written), func(t *testing.T) {
					t.Parallel()
					shared := t.TempDir()
					device := func() *opened {
						return mustOpen(t, map[string]any{"path": t.TempDir(), "engine": engine, "sync": map[string]any{"path": shared, "engine": hub}})
					}
					a, b := device(), device()
					defer a.close()
					defer b.close()
					for _, name := range []string{"old", "changed", "gone"} {
						a.storeEach(name, 1)
					}
					a.must("memory.sync", nil)
					b.must("memory.sync", nil)
					copied := copyOf(t, shared)
					a.storeEach("new", 1)
					a.storeEach("changed", 2)
					a.deleteEach("gone")
					a.must("memory.sync", nil)
					b.must("memory.sync", nil)
					want := map[string]string{"old": "1", "new": "1", "changed": "2"}

					restoreFolder(t, copied, shared)
					if written > 0 { // so that the numbers of changes are those of others
						c := device()
						defer c.close()
						for n := range written {
							name := fmt.Sprint("later", n)
							want[name] = "1"
							c.storeEach(name, 1)
						}
						c.must("memory.sync", nil)
					}
					r := a.must("memory.sync", nil)
					a.equal("restored", r["restored"], "other")
					a.equal("full", r["full"], true)
					a.equal("the second device", b.must("memory.sync", nil)["restored"], "other")
					a.equal("once", a.must("memory.sync", nil)["restored"], "")
					again := b.must("memory.sync", nil)
					a.equal("nothing to do", fmt.Sprint(again["full"], again["bytes"], again["restored"]), "false 0")
					expected := versionsOf(want)
					expected["session gone"] = "1"
					expected["row gone"] = "1" // nothing tells that a row was deleted
					for name, o := range map[string]*opened{"a": a, "b": b} {
						if diff := cmp.Diff(expected, o.everything()); diff != "" {
							t.Errorf("%s (-want +got):\n%s", name, diff)
						}
					}
					// A later deletion is one.
					b.deleteEach("old")
					b.must("memory.sync", nil)
					a.must("memory.sync", nil)
					delete(want, "old")
					expected = versionsOf(want)
					expected["session gone"], expected["session old"], expected["row gone"] = "1", "1", "1"
					a.equal("after a deletion", cmp.Diff(expected, a.everything()), "")
				})
			}
		}
	})
}

// TestSyncAfterAnOlderCopyOfADevice puts an older copy of a device back, which writes
// before it synchronises.
func TestSyncAfterAnOlderCopyOfADevice(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		shared, dir := t.TempDir(), t.TempDir()
		device := func(dir string) *opened {
			return mustOpen(t, map[string]any{"path": dir, "engine": engine, "sync": map[string]any{"path": shared, "engine": "sqlite"}})
		}
		a, b := device(dir), device(t.TempDir())
		defer b.close()
		for _, name := range []string{"old", "changed", "gone"} {
			a.storeEach(name, 1)
		}
		a.must("memory.sync", nil)
		a.close()
		copied := copyOf(t, dir)
		a = device(dir)
		a.storeEach("new", 1)
		a.storeEach("changed", 2)
		a.deleteEach("gone")
		a.must("memory.sync", nil)
		b.must("memory.sync", nil)
		a.close()
		restoreFolder(t, copied, dir)
		a = device(dir)
		a.storeEach("other", 1)
		a.equal("restored", a.must("memory.sync", nil)["restored"], "this")
		a.equal("once", a.must("memory.sync", nil)["restored"], "")
		a.equal("the other device", b.must("memory.sync", nil)["restored"], "")
		want := versionsOf(map[string]string{"old": "1", "new": "1", "changed": "2", "other": "1"})
		want["session gone"] = "1"
		for name, o := range map[string]*opened{"a": a, "b": b} {
			if diff := cmp.Diff(want, o.everything()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		// The copy of a device that goes on beside it is another device.
		a.close()
		clone := device(copied)
		clone.storeEach("clone", 1)
		clone.equal("a copy beside", clone.must("memory.sync", nil)["restored"], "this")
		clone.close()
		a = device(dir)
		a.equal("the one that was copied", a.must("memory.sync", nil)["restored"], "")
		a.equal("of the clone", a.must("ltm.retrieve", map[string]any{"key": "clone"})["value"], "1")
		a.close()
	})
}
