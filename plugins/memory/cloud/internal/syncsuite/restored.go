package syncsuite

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stored returns the versions of the records that storeEach stored.
func (d Device) stored(r Remote) map[string]any {
	d.t.Helper()
	all := map[string]any{}
	for key, version := range d.Values("") {
		all["entry "+key] = version
		all["file "+key] = d.Do("memory.file_retrieve", map[string]any{"path": key})["content"]
	}
	for _, found := range d.Do("vector.query", map[string]any{"embedding": []float64{1, 0}, "k": 100})["results"].([]any) { //nolint:forcetypeassert // as the schema says
		item := found.(map[string]any) //nolint:forcetypeassert // as the schema says
		all[fmt.Sprint("vector ", item["id"])] = item["text"]
	}
	if !r.NoTables {
		for id, row := range d.rows("Versions") {
			all["row "+id] = row.(map[string]any)["v"] //nolint:forcetypeassert // as the schema says
		}
	}
	return all
}

// storeEach stores or replaces a record of each kind.
func (d Device) storeEach(r Remote, name string, version int) {
	d.t.Helper()
	text := fmt.Sprint(version)
	d.Do("ltm.store", map[string]any{"key": name, "value": text})
	d.Do("memory.file_store", map[string]any{"path": name, "content": text})
	d.Do("vector.store", map[string]any{"ids": []string{name}, "texts": []string{text}, "embeddings": [][]float64{{1, float64(version)}}})
	if !r.NoTables {
		d.Do("data.create_table", map[string]any{"name": "Versions", "primary_key": []string{"id"}, "schema": map[string]any{"id": "string", "v": "string"}})
		d.Do("data.insert", map[string]any{"table": "Versions", "rows": []map[string]any{{"id": name, "v": text}}, "on_conflict": "replace"})
	}
}

// Restored restores an older copy of the remote memory, made by makeCopy. Another device writes to it before the
// devices that know its later state do.
func Restored(t *testing.T, r Remote, makeCopy func() (putBack func())) {
	t.Helper()
	a, b, c := r.Device(t, nil), r.Device(t, nil), r.Device(t, nil)
	for _, name := range []string{"old", "changed"} {
		a.storeEach(r, name, 1)
	}
	a.Do("memory.sync", nil)
	b.Do("memory.sync", nil)
	putBack := makeCopy()
	a.storeEach(r, "new", 1)
	a.storeEach(r, "changed", 2)
	a.Do("memory.sync", nil)
	b.Do("memory.sync", nil)
	putBack()
	names := map[string]string{"old": "1", "new": "1", "changed": "2"}
	for n := range 5 {
		c.storeEach(r, fmt.Sprint("later", n), 1)
		names[fmt.Sprint("later", n)] = "1"
	}
	c.Do("memory.sync", nil)
	nothing := map[string]any{"conflicts": int64(0), "deleted_locally": int64(0), "deleted_remotely": int64(0), "refused": []any{}}
	for _, d := range []Device{a, b} {
		result := d.Do("memory.sync", nil)
		d.Same("after the copy was put back", result, nothing)
		d.Same("after the copy was put back", result, map[string]any{"restored": "other", "full": true})
	}
	for _, d := range []Device{c, a, b} {
		d.Same("again", d.Do("memory.sync", nil), map[string]any{"restored": "", "full": false, "conflicts": int64(0)})
	}
	want := map[string]any{}
	for name, version := range names {
		for _, kind := range []string{"entry ", "file ", "vector "} {
			want[kind+name] = version
		}
		if !r.NoTables {
			want["row "+name] = version
		}
	}
	for i, d := range []Device{a, b, c} {
		if diff := cmp.Diff(want, d.stored(r)); diff != "" {
			t.Errorf("device %d (-want +got):\n%s", i, diff)
		}
	}
	b.Do("ltm.delete", map[string]any{"key": "old"})
	b.Do("memory.sync", nil)
	a.Same("a later deletion", a.Do("memory.sync", nil), map[string]any{"deleted_locally": int64(1)})
}

// FolderCopies returns a function that copies the folder of a server, which stop stops and start restarts.
func FolderCopies(t *testing.T, dir string, stop, start func()) (makeCopy func() (putBack func())) {
	t.Helper()
	replace := func(to, from string) {
		stop()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		start()
	}
	return func() func() {
		copied := t.TempDir()
		replace(copied, dir)
		return func() { replace(dir, copied) }
	}
}
