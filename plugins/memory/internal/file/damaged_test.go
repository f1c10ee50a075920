package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
)

// damage writes other bytes into the content of a file, or removes it.
func (d *device) damage(t *testing.T, path, instead string) {
	t.Helper()
	have, err := d.Stat(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(d.Dir, "blobs", "files", have.Hash[:2], have.Hash)
	if err := os.Remove(blob); err != nil {
		t.Fatal(err)
	}
	if instead == "" {
		return
	}
	if err := os.WriteFile(blob, []byte(instead), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOneDamagedFileEndsNoSearch is about a disk that has lost some bytes: all
// other files are found, and nobody gets to see what stands in their place.
func TestOneDamagedFileEndsNoSearch(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for _, path := range []string{"a.json", "b.json", "c.json", "d.jsonl"} {
			d.put(t, path, `{"pump": "`+path+`"}`+"\n")
		}
		d.damage(t, "b.json", `{"pump": "b"}`+"\n")
		d.damage(t, "c.json", "")
		d.damage(t, "d.jsonl", `{"pump": "d"}`+"\n")

		found := d.grep(t, find(t, "pump"))
		want(t, "lines", places(found), "a.json:1:3")
		want(t, "damaged", found.Damaged, []string{"b.json", "c.json", "d.jsonl"})
		want(t, "truncated", found.Truncated, false)

		exists, err := file.NewCondition("$.pump", "exists", true)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := d.Search(t.Context(), file.DocumentSearch{Conditions: []file.Condition{exists}, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "documents", len(documents.Documents), 1)
		want(t, "skipped", documents.Skipped, 3)
	})
}
