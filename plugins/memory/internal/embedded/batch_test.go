package embedded_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// manyEntries are more than one goroutine prepares.
func manyEntries(n int) []store.Entry {
	entries := make([]store.Entry, n)
	for i := range entries {
		entries[i] = store.Entry{Key: fmt.Sprintf("key/%04d", i), Value: json.RawMessage(fmt.Sprintf(`"the value %d"`, i))}
	}
	return entries
}

func TestFirstWrongEntryOfManyIsNamed(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		entries := manyEntries(500)
		entries[499].Value, entries[77].Value, entries[300].Key = json.RawMessage(`[`), json.RawMessage(`{`), ""
		if _, err := d.Store(t.Context(), entries...); err == nil || !strings.Contains(err.Error(), "key/0077") {
			t.Errorf("%v, want that key/0077 is wrong", err)
		}
		if page, err := d.List(t.Context(), store.List{Limit: 1}); err != nil || len(page.Entries) > 0 {
			t.Errorf("%v, %v, want nothing", page, err)
		}
	})
}

// What was stored is found at once, however much the index is behind.
func TestManyEntriesAreFoundAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.found(t, store.Search{Text: "value"}) // from now on the index is told
		for round := range 5 {
			entries := manyEntries(300)
			for i := range entries {
				entries[i].Key = fmt.Sprintf("%d/%s", round, entries[i].Key)
			}
			stored, err := d.Store(t.Context(), entries...)
			if err != nil {
				t.Fatal(err)
			}
			if len(stored) != 300 || !stored[299].Created {
				t.Fatalf("%d were stored, the last as %+v", len(stored), stored[len(stored)-1])
			}
			if got := d.found(t, store.Search{Text: "299"}); len(got) != round+1 {
				t.Errorf("round %d: found %q", round, got)
			}
			if _, err := d.Delete(t.Context(), "", entries[0].Key); err != nil {
				t.Fatal(err)
			}
			if got := d.found(t, store.Search{Text: `"value 0"`}); len(got) != 0 {
				t.Errorf("round %d: found %q, which was deleted", round, got)
			}
		}
	})
}
