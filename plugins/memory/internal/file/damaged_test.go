package file_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/store"
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

// TestADamagedRowDoesNotEndASearch is about a row of a file that is not valid JSON.
func TestADamagedRowDoesNotEndASearch(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for _, path := range []string{"a.json", "b.json", "c.json"} {
			d.put(t, path, `{"pump": "`+path+`"}`)
		}
		err := d.Engine.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE documents SET body = replace(body, '{', 'X') WHERE id = 'b.json'")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		found := d.grep(t, find(t, "pump"))
		want(t, "lines", places(found), "a.json:1:3 c.json:1:3")
		want(t, "damaged", found.Damaged, []string{"b.json"})
		exists, err := file.NewCondition("$.pump", "exists", true)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := d.Search(t.Context(), file.DocumentSearch{Conditions: []file.Condition{exists}, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "documents", len(documents.Documents), 2)
		want(t, "skipped", documents.Skipped, 1)
		listed, _, err := d.List(t.Context(), file.Query{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "listed", []bool{listed[0].Damaged, listed[1].Damaged, listed[2].Damaged}, []bool{false, true, false})
		changed, _, total, err := d.Changes(t.Context(), 0)
		want(t, "changes", []any{len(changed), total, err}, []any{3, 3, nil})

		if err := d.Sweep(t.Context()); err == nil {
			t.Error("a sweep removes the content of a damaged file")
		}

		d.put(t, "b.json", `{"pump": "b.json"}`)
		if err := d.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		want(t, "stored again", places(d.grep(t, find(t, "pump"))), "a.json:1:3 b.json:1:3 c.json:1:3")
	})
}

// TestADamagedFileDoesNotEndASearch is about a disk that has lost some bytes: all
// other files are found, and what is in their place is never returned.
func TestADamagedFileDoesNotEndASearch(t *testing.T) {
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
