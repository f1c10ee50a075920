package storetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Unused calls check with a database in dir as a crash left it, and with copies that
// processes have since opened without using their contents: an engine may recover data
// when it opens a database and lose it when it closes it.
func Unused(t *testing.T, dir string, open Opener, check func(t *testing.T, dir string)) {
	t.Helper()
	for way, use := range map[string]func(t *testing.T, dir string){
		"opened and closed":       func(t *testing.T, dir string) { used(t, dir, open, nothing) },
		"opened and closed twice": func(t *testing.T, dir string) { used(t, dir, open, nothing); used(t, dir, open, nothing) },
		"inspected":               func(t *testing.T, dir string) { used(t, dir, open, inspect) },
		"backed up": func(t *testing.T, dir string) {
			copied := t.TempDir()
			used(t, dir, open, func(t *testing.T, db store.Store) {
				if err := db.Backup(t.Context(), copied); err != nil {
					t.Fatal(err)
				}
			})
			check(t, copied)
		},
		"opened and killed": func(t *testing.T, dir string) {
			copied := t.TempDir()
			used(t, dir, open, func(t *testing.T, _ store.Store) { copyFolder(t, copied, dir) })
			used(t, copied, open, nothing)
			check(t, copied)
		},
	} {
		copied := t.TempDir()
		copyFolder(t, copied, dir)
		use(t, copied)
		check(t, copied)
		if t.Failed() {
			t.Fatalf("the database was %s after the crash", way)
		}
	}
	check(t, dir)
}

func copyFolder(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(filepath.Clean(from))); err != nil {
		t.Fatal(err)
	}
}

// used opens a database, calls use and closes it.
func used(t *testing.T, dir string, open Opener, use func(*testing.T, store.Store)) {
	t.Helper()
	db, err := open(t.Context(), store.Options{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	use(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func nothing(*testing.T, store.Store) {}

// inspect reads the description of a database through a namespace that does not exist.
func inspect(t *testing.T, db store.Store) {
	if _, err := db.Stats(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Dimension(t.Context()); err != nil {
		t.Fatal(err)
	}
}
