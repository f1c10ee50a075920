package file_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
)

func TestChanges(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		last := int64(0)
		check := func(what, want string) {
			t.Helper()
			changed, now, total, err := d.Changes(t.Context(), last)
			if err != nil {
				t.Fatal(err)
			}
			paths := []string{}
			for _, f := range changed {
				paths = append(paths, f.Path)
			}
			slices.Sort(paths)
			if got := fmt.Sprint(total, " ", strings.Join(paths, " ")); got != want {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
			last = now
		}
		check("nothing", "0 ")
		for i := range 40 {
			d.put(t, fmt.Sprintf("%02d", i), "a")
		}
		changed, _, total, err := d.Changes(t.Context(), 0)
		if err != nil || len(changed) != 40 || total != 40 {
			t.Fatalf("got %d of %d files, error %v", len(changed), total, err)
		}
		last = 1 // the first one
		if changed, last, _, err = d.Changes(t.Context(), last); err != nil || len(changed) != 39 {
			t.Fatalf("after the first one: got %d files, error %v", len(changed), err)
		}
		check("no change", "40 ")
		d.put(t, "05", "b")
		d.put(t, "06", "a") // as it was
		d.put(t, "more", "a")
		check("stored", "41 05 more")
		if _, err := d.Delete(t.Context(), "07"); err != nil {
			t.Fatal(err)
		}
		check("removed", "40 ")
		d.put(t, file.SessionPrefix+"s/a", "a")
		moves, err := d.Moves(t.Context(), file.SessionPrefix+"s/", file.ArchivePrefix+file.SessionPrefix+"s/")
		if err == nil {
			err = d.Documents.Apply(t.Context(), moves...)
		}
		if err != nil {
			t.Fatal(err)
		}
		check("moved", "41 archive/sessions/s/a")
	})
}
