package syncsuite

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All runs all tests. open returns an empty remote memory for each of them.
func All(t *testing.T, open func(t *testing.T) Remote) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Remote){
		"two devices": twoDevices, "matrix": matrix, "archives": archives, "large": large, "tables": tables, "too large": tooLarge,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			if name == "tables" && r.NoTables {
				t.Skip("the memory has no tables")
			}
			if name == "too large" && r.TooLarge == 0 {
				t.Skip("the memory stores all")
			}
			test(t, r)
		})
	}
}

func twoDevices(t *testing.T, r Remote) {
	a, b, shared := r.Device(t, nil), r.Device(t, nil), r.Shared(t, nil)
	a.Do("ltm.store", map[string]any{"namespace": "team", "key": "k", "value": "harbor one", "metadata": map[string]any{"from": "a"}})
	a.Do("ltm.store", map[string]any{"namespace": "team", "key": "brief", "value": 1, "ttl": 3600})
	a.Do("vector.store", map[string]any{"ids": []string{"v"}, "texts": []string{"first"}, "embeddings": [][]float64{{1, 0}}})
	a.Do("memory.file_store", map[string]any{"path": "note.md", "content": "# text"})
	a.Do("session.create", map[string]any{"session_id": "s"})
	a.Same("the first device", a.Do("memory.sync", nil), map[string]any{"pushed": int64(5), "pulled": int64(0), "conflicts": int64(0), "refused": []any{}})
	for what, d := range map[string]Device{"the server": shared, "the second device": b} {
		if what == "the second device" {
			d.Same(what, d.Do("memory.sync", nil), map[string]any{"pulled": int64(5), "pushed": int64(0)})
		}
		d.Same(what, d.Do("ltm.retrieve", map[string]any{"namespace": "team", "key": "k"}), map[string]any{"value": "harbor one", "metadata": map[string]any{"from": "a"}})
		if what != "the server" || !r.NoFullText {
			if n := len(d.Do("ltm.search", map[string]any{"namespace": "team", "query": "harbors"})["results"].([]any)); n != 1 { //nolint:forcetypeassert // as the schema says
				t.Errorf("%s finds %d entries", what, n)
			}
		}
		if n := len(d.Do("vector.query", map[string]any{"embedding": []float64{1, 0}})["results"].([]any)); n != 1 { //nolint:forcetypeassert // as the schema says
			t.Errorf("%s finds %d vectors", what, n)
		}
		d.Same(what, d.Do("memory.file_retrieve", map[string]any{"path": "note.md"}), map[string]any{"content": "# text"})
		d.Same(what, d.Do("session.get", map[string]any{"session_id": "s"}), map[string]any{"success": true})
	}
	// Deletions on the server and on a device.
	shared.Do("ltm.delete", map[string]any{"namespace": "team", "key": "k"})
	b.Do("memory.file_delete", map[string]any{"path": "note.md"})
	b.Do("vector.delete", map[string]any{"ids": []string{"v"}})
	b.Same("the second device", b.Do("memory.sync", nil), map[string]any{"deleted_locally": int64(1), "deleted_remotely": int64(2), "conflicts": int64(0)})
	a.Same("the first device", a.Do("memory.sync", nil), map[string]any{"deleted_locally": int64(3), "conflicts": int64(0)})
	a.Same("nothing to do", a.Do("memory.sync", nil), map[string]any{"bytes": int64(0), "pulled": int64(0), "pushed": int64(0), "deleted_locally": int64(0)})
	if diff := cmp.Diff(map[string]any{"brief": int64(1)}, shared.Values("team")); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	// A reset memory is a different memory.
	shared.Do("memory.reset", map[string]any{"confirm": true})
	a.Do("memory.sync", nil)
	if diff := cmp.Diff(map[string]any{"brief": int64(1)}, shared.Values("team")); diff != "" {
		t.Errorf("after a reset of the server (-want +got):\n%s", diff)
	}
}

// matrix changes records on a device and at the remote in every way, under every
// policy.
func matrix(t *testing.T, r Remote) {
	// The state of a record on both sides before, and then on each side; 0 = absent.
	cases := []struct{ before, local, remote int }{
		{0, 1, 0}, {0, 0, 1}, {0, 1, 1}, {0, 1, 2}, {1, 2, 1}, {1, 1, 2}, {1, 2, 2}, {1, 2, 3}, {1, 0, 1}, {1, 1, 0}, {1, 0, 2}, {1, 2, 0}, {1, 0, 0},
	}
	device, other, shared := r.Device(t, map[string]any{"merge": "sum"}), r.Device(t, nil), r.Shared(t, nil)
	for _, policy := range []string{"last_write", "remote", "local", "merge"} {
		change := func(d Device, i, from, to int) {
			key := fmt.Sprint(i)
			if to == 0 && from != 0 {
				d.Do("ltm.delete", map[string]any{"namespace": policy, "key": key})
			} else if to != from {
				d.Do("ltm.store", map[string]any{"namespace": policy, "key": key, "value": to})
			}
		}
		for i, c := range cases {
			change(device, i, 0, c.before)
		}
		device.Do("memory.sync", nil)
		other.Do("memory.sync", nil)
		conflicts := int64(0)
		want := map[string]any{}
		for i, c := range cases {
			change(device, i, c.before, c.local)
		}
		for i, c := range cases {
			change(other, i, c.before, c.remote) // the later one
			conflict := c.local != c.remote && c.local != c.before && c.remote != c.before
			winner := c.remote
			switch {
			case conflict && policy == "local", c.remote == c.before:
				winner = c.local
			case conflict && policy == "merge":
				winner = c.local + c.remote
			}
			if conflict {
				conflicts++
			}
			if winner != 0 {
				want[fmt.Sprint(i)] = int64(winner)
			}
		}
		other.Do("memory.sync", nil)
		device.Same(policy, device.Do("memory.sync", map[string]any{"conflicts": policy}), map[string]any{"conflicts": conflicts, "refused": []any{}})
		other.Same(policy+" on the other device", other.Do("memory.sync", nil), map[string]any{"conflicts": int64(0)})
		for name, d := range map[string]Device{"device": device, "other": other, "server": shared} {
			if diff := cmp.Diff(want, d.Values(policy)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", policy, name, diff)
			}
		}
		device.Same(policy+" again", device.Do("memory.sync", map[string]any{"conflicts": policy}), map[string]any{"conflicts": int64(0), "pulled": int64(0), "pushed": int64(0)})
	}
}

// archives copies a memory from a device to the server and back.
func archives(t *testing.T, r Remote) {
	dir := t.TempDir()
	local := func() Device {
		return Open(t, r.Option, map[string]any{"engine": "sqlite", "path": t.TempDir(), "archives": dir})
	}
	from, shared, back := local(), r.Shared(t, map[string]any{"archives": dir}), local()
	fill(from)
	from.Do("memory.backup", map[string]any{"path": "first.teamem"})
	want := from.Do("memory.inspect", nil)["entries"]
	shared.Same("restored", shared.Do("memory.restore", map[string]any{"path": "first.teamem"}), map[string]any{"refused": []any{}, "checked": true, "resumed": false})
	if _, err := shared.Call(t.Context(), "memory.restore", map[string]any{"path": "first.teamem"}); err == nil {
		t.Error("an archive was restored into a memory that is not empty")
	}
	shared.Same("imported again", shared.Do("memory.import", map[string]any{"path": "first.teamem", "existing": "keep"}), map[string]any{"written": int64(0)})
	shared.Do("memory.backup", map[string]any{"path": "second.teamem"})
	back.Do("memory.restore", map[string]any{"path": "second.teamem"})
	if diff := cmp.Diff(want, back.Do("memory.inspect", nil)["entries"]); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(from.Values("n"), back.Values("n")); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	back.Same("a file", back.Do("memory.file_retrieve", map[string]any{"path": "f.txt"}), map[string]any{"content": "content"})
}

func fill(d Device) {
	var items []map[string]any
	for i := range 300 {
		items = append(items, map[string]any{"key": fmt.Sprintf("k%03d", i), "value": fmt.Sprintf("value %d", i)})
	}
	d.Do("ltm.store", map[string]any{"namespace": "n", "items": items})
	d.Do("ltm.delete", map[string]any{"namespace": "n", "key": "k000"})
	d.Do("vector.store", map[string]any{"ids": []string{"v"}, "texts": []string{"first"}, "embeddings": [][]float64{{1, 0.1}}, "metadata": []any{map[string]any{"a": 1}}})
	d.Do("memory.file_store", map[string]any{"path": "f.txt", "content": "content"})
	d.Do("session.create", map[string]any{"session_id": "s"})
}

// large synchronises many records and large values.
func large(t *testing.T, r Remote) {
	a, b := r.Device(t, nil), r.Device(t, nil)
	for part := range 2 { // each needs two pages
		var items []map[string]any
		for i := range 550 {
			value := any(i)
			if i%100 == 0 {
				value = fmt.Sprintf("%0*d", 100_000+i, part)
			}
			items = append(items, map[string]any{"key": fmt.Sprintf("%d/%03d", part, i), "value": value})
		}
		a.Do("ltm.store", map[string]any{"items": items})
	}
	a.Same("pushed", a.Do("memory.sync", nil), map[string]any{"pushed": int64(1100), "refused": []any{}})
	b.Same("pulled", b.Do("memory.sync", nil), map[string]any{"pulled": int64(1100), "refused": []any{}})
	if diff := cmp.Diff(a.Values(""), b.Values("")); diff != "" {
		t.Errorf("entries (-first +second):\n%.2000s", diff)
	}
	a.Do("ltm.delete", map[string]any{"prefix": "1/"})
	a.Same("deleted", a.Do("memory.sync", nil), map[string]any{"deleted_remotely": int64(550)})
	b.Same("deleted", b.Do("memory.sync", nil), map[string]any{"deleted_locally": int64(550), "conflicts": int64(0)})
}
