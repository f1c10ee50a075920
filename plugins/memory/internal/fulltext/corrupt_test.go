package fulltext

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// checkRepaired checks that an index with damage answers right or not at all.
func (h *history) checkRepaired(d disk, what string) {
	h.t.Helper()
	x, err := open("damaged", d, Options{})
	if err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
	defer x.Close()
	if x.Lost() != nil {
		if x.Len() != 0 || x.Watermark() != 0 {
			h.t.Fatalf("%s: lost, but %d documents at %d", what, x.Len(), x.Watermark())
		}
		if names, _ := d.list(); len(names) != 0 {
			h.t.Fatalf("%s: left %v", what, names)
		}
		return
	}
	if x.Watermark() != h.seq {
		h.t.Fatalf("%s: opened at %d", what, x.Watermark())
	}
	for _, q := range probes {
		_, err := x.Search(context.Background(), q, SearchOptions{})
		if err == nil {
			h.n.compare(h.t, x, q)
			continue
		}
		if !errors.Is(err, ErrCorrupt) {
			h.t.Fatalf("%s: Search: %v", what, err)
		}
		if err := x.Put(Document{ID: 1, Seq: h.seq + 1}); !errors.Is(err, ErrCorrupt) {
			h.t.Fatalf("%s: Put into a corrupt index: %v", what, err)
		}
		y, err := open("again", d, Options{})
		if err != nil || y.Lost() == nil {
			h.t.Fatalf("%s: a corrupt index was opened again: %v", what, err)
		}
		y.Close()
		if err := x.Reset(); err != nil || x.Len() != 0 || x.Watermark() != 0 {
			h.t.Fatalf("%s: Reset: %v", what, err)
		}
		if err := x.Put(Document{ID: 1, Seq: 1, Fields: []Field{{"", "valve"}}}); err != nil {
			h.t.Fatalf("%s: Put after Reset: %v", what, err)
		}
		return
	}
}

// TestADamagedFileNeverReturnsAWrongResult flips and cuts every file.
func TestADamagedFileNeverReturnsAWrongResult(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	d := newMemDisk()
	h := newHistory(t, d)
	for range 3 {
		h.change(15)
		waitMerged(t, h.x)
	}
	names, _ := d.list()
	slices.Sort(names)
	if len(names) != 4 {
		t.Fatalf("the directory has %v", names)
	}
	for _, name := range names {
		size := len(d.clone().files[name].data)
		for i := 0; i < size; i += 1 + size/80 {
			flipped := d.clone()
			flipped.files[name].data[i] ^= 1 << (i % 8)
			h.checkRepaired(flipped, name+" flipped")
			cut := d.clone()
			cut.files[name].data = cut.files[name].data[:i]
			h.checkRepaired(cut, name+" cut")
		}
		longer := d.clone()
		longer.files[name].data = append(longer.files[name].data, 0)
		h.checkRepaired(longer, name+" with more behind it")
		missing := d.clone()
		delete(missing.files, name)
		h.checkRepaired(missing, name+" missing")
	}
	swapped := d.clone()
	swapped.files[names[0]], swapped.files[names[1]] = swapped.files[names[1]], swapped.files[names[0]]
	h.checkRepaired(swapped, "swapped segments")
}

// A damaged block or directory of a long list is found by the searches that read it.
func TestADamagedBlockNeverReturnsAWrongResult(t *testing.T) {
	t.Parallel()
	d := newMemDisk()
	x, err := open("blocks", d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(5 * blockDocs) {
		text := strings.Repeat("pump ", 1+int(i%9)) + fmt.Sprintf("valve%d", i%2)
		if err := x.Put(Document{ID: i, Seq: i + 1, Fields: []Field{{"text", text}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	search := func(d disk) (found [][]Hit, err error) {
		x, err := open("blocks", d, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if x.Lost() != nil {
			return nil, ErrCorrupt
		}
		for _, limit := range []int{0, 3} {
			for _, query := range []string{"pump", "valve1", "pump valve0"} {
				r, err := x.Search(context.Background(), query, SearchOptions{Limit: limit})
				if err != nil {
					return nil, err
				}
				found = append(found, slices.Collect(r.All()))
			}
		}
		return found, nil
	}
	want, err := search(d.clone())
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	size := len(d.files["00000001.seg"].data)
	for i := 0; i < size; i += 1 + size/400 {
		flipped := d.clone()
		flipped.files["00000001.seg"].data[i] ^= 1 << (i % 8)
		got, err := search(flipped)
		switch {
		case errors.Is(err, ErrCorrupt):
			damaged++
		case err != nil || !cmp.Equal(got, want):
			t.Fatalf("byte %d: %v, %v", i, got, err)
		}
	}
	if damaged < 50 {
		t.Errorf("%d searches found the damage", damaged)
	}
}

// TestOpenReportsWhyTheIndexIsEmpty covers the reasons a user can meet.
func TestOpenReportsWhyTheIndexIsEmpty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		language   string
		damage     func(t *testing.T, dir string)
	}{
		{"nothing there", "no index exists yet", "", func(t *testing.T, dir string) { os.RemoveAll(dir) }},
		{"other language", `for the language "english", not "german"`, "german", func(*testing.T, string) {}},
		{"newer", "has format 6, this program reads 5", "", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, manifestName), "tea-fulltext 5", "tea-fulltext 6")
		}},
		{"older", "has format 1, this program reads 5", "", func(t *testing.T, dir string) {
			older := `{"analysis":"3","language":"english","watermark":1,"next":2,"segments":[{"name":"00000001.seg","sum":7}]}`
			head := fmt.Sprintf("tea-fulltext 1 %08x\n", checksum([]byte(older)))
			if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(head+older), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"torn", "checksum", "", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, manifestName), `"watermark":1`, `"watermark":2`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "index")
			x := mustOpen(t, dir, "")
			if !errors.Is(x.Lost(), fs.ErrNotExist) {
				t.Errorf("Lost() of a new index = %v", x.Lost())
			}
			if err := x.Put(Document{ID: 1, Seq: 1, Fields: []Field{{"", "valve"}}}); err != nil {
				t.Fatal(err)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			c.damage(t, dir)
			y := mustOpen(t, dir, c.language)
			defer y.Close()
			if y.Lost() == nil || !strings.Contains(y.Lost().Error(), c.want) {
				t.Errorf("Lost() = %v, want %q in it", y.Lost(), c.want)
			}
			if left, _ := os.ReadDir(dir); y.Len() != 0 || y.Watermark() != 0 || len(left) != 0 {
				t.Errorf("%d documents at %d, files %v", y.Len(), y.Watermark(), left)
			}
		})
	}
}

func edit(t *testing.T, name, from, to string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(data), from) {
		t.Fatalf("%q is not in %s: %v", from, name, err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
