package graph_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// inRoot opens a graph in the folder w of a new root of files, as the default
// layout of a workflow has it.
func inRoot(t *testing.T, backend string) (g *opened, root string) {
	t.Helper()
	root = t.TempDir()
	g = openWith(t, object{"graph": object{"backend": backend, "path": filepath.Join(root, "w")}, "file": object{"root": root}})
	g.needLibrary()
	return g, root
}

// An export would replace the files of a graph.
func TestExportsIntoTheFolderOfAGraphAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, root := inRoot(t, name)
			g.link("a-knows-b")
			other := openWith(t, object{"graph": object{"backend": "memory", "path": filepath.Join(root, "other")}, "file": object{"root": filepath.Join(root, "w")}})
			other.link("a-knows-b")
			if err := os.Symlink("w", filepath.Join(root, "link")); err != nil {
				t.Fatal(err)
			}
			g.call("backup", object{"path": "bk"})
			for _, path := range []string{"w/graph.sqlite", "w/graph.cozo", "w/graph.kuzu", "w/graph.json", "w/sub/x.jsonl", "w/new", "link/x", "other/x.jsonl", "other/sub/x", "bk/x", "bk/graph.json"} {
				g.fails("export", object{"path": path, "format": "jsonl"}, tea.ValidationError, "is inside the folder of the graph")
			}
			for _, path := range []string{"w", "w/csv", "other", "link", "bk"} {
				g.fails("export", object{"path": path, "format": "csv"}, tea.ValidationError, "is inside the folder of the graph")
				g.fails("export", object{"path": path, "format": "parquet"}, tea.ValidationError, "is inside the folder of the graph")
			}
			g.fails("backup", object{"path": "w/bk"}, tea.ValidationError, "is inside the folder of the graph")
			g.fails("backup", object{"path": "other/bk"}, tea.ValidationError, "is inside the folder of the graph")
			// The root of the other is the folder of this graph.
			other.fails("export", object{"path": "x.jsonl"}, tea.ValidationError, "is inside the folder of the graph")
			g.close()
			again, err := openWith(t, g.settings).try("stats", object{})
			if err != nil || again["relations"] != int64(1) {
				t.Errorf("afterwards: %v, %v", again, err)
			}
		})
	}
}

func TestLinksThatLeadOutAreRefused(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	g.link("a-knows-b")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.jsonl"), []byte(`{"kind":"entity","id":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"lnk": outside, "x.jsonl": filepath.Join(outside, "x.jsonl"), "inside": "sub"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"lnk/x.jsonl", "lnk/sub/x.jsonl"} {
		g.fails("export", object{"path": path}, tea.PermissionDenied, "the path \""+path+"\" leads out of settings.file.root")
		g.fails("import", object{"path": path}, tea.PermissionDenied, "leads out of settings.file.root")
	}
	g.fails("import", object{"path": "x.jsonl"}, tea.PermissionDenied, "leads out of settings.file.root")
	g.fails("export", object{"path": "lnk", "format": "csv"}, tea.PermissionDenied, "leads out of settings.file.root")
	g.fails("backup", object{"path": "lnk/bk"}, tea.PermissionDenied, "leads out of settings.file.root")
	g.call("export", object{"path": "inside/y.jsonl"})
	g.call("import", object{"path": "inside/y.jsonl"})
	g.call("export", object{"path": "x.jsonl"}) // the link is replaced, not its target
	if text, err := os.ReadFile(filepath.Join(outside, "x.jsonl")); err != nil || !strings.Contains(string(text), `"id":"x"`) {
		t.Errorf("the file outside: %s, %v", text, err)
	}
	g.fails("export", object{"path": "sub", "format": "jsonl"}, tea.ValidationError, filepath.Join(root, "sub")+" is a folder, and the format jsonl needs a file")
	g.fails("import", object{"path": "sub", "format": "jsonl"}, tea.ValidationError, "is a folder")
	g.fails("import", object{"path": "sub/no.jsonl"}, tea.NotFound, "the file "+filepath.Join(root, "sub", "no.jsonl")+" does not exist")
	g.fails("import", object{"path": "sub", "format": "csv"}, tea.NotFound, filepath.Join(root, "sub", "entities.csv")+" does not exist; the format csv needs entities.csv and relations.csv")
}

// A graph can have secrets: no other user can read its files.
func TestFilesOfAGraphAreOnlyForTheUser(t *testing.T) {
	t.Parallel()
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "graph")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			g := openWith(t, object{"graph": object{"backend": name, "path": dir}, "file": object{"root": root}})
			g.needLibrary()
			g.link("a-knows-b")
			g.call("backup", object{"path": "bk"})
			g.link("a-knows-c")
			private(t, dir)
			private(t, filepath.Join(root, "bk"))
			g.close()
			private(t, dir)
			// Those of an earlier version are corrected.
			for file := range files(t, dir) {
				if err := os.Chmod(filepath.Join(dir, file), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			again := openWith(t, g.settings)
			again.link("a-knows-d")
			private(t, dir)
			again.call("restore", object{"path": "bk", "confirm": true})
			again.link("a-knows-e")
			private(t, dir)
		})
	}
}

func private(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A damaged backup is named, and the graph stays as it is.
func TestADamagedBackupIsNotRestored(t *testing.T) {
	t.Parallel()
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, root := inRoot(t, name)
			var entities []any
			for i := range 300 {
				entities = append(entities, object{"entity_id": fmt.Sprint("e", i), "text": strings.Repeat("word ", 20)})
			}
			g.call("store_entities", object{"entities": entities})
			g.call("backup", object{"path": "bk"})
			file := filepath.Join(root, "bk", map[string]string{"memory": "graph.sqlite", "cozo": "graph.cozo", "cypher": "graph.kuzu"}[name])
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			const unchanged = " cannot be restored, and the graph is unchanged: "
			bk := "the backup " + filepath.Join(root, "bk")
			damages := map[string]func() []byte{
				"another file":  func() []byte { return []byte(strings.Repeat("a text of someone else\n", 1000)) },
				"without start": func() []byte { return append(make([]byte, 4096), text[4096:]...) },
			}
			if name != "cozo" { // it has no check of its pages
				damages["pages of zeros"] = func() []byte {
					damaged := append([]byte(nil), text...)
					middle := len(damaged) / 2 / 4096 * 4096
					clear(damaged[middle : middle+3*4096])
					return damaged
				}
			}
			for what, damage := range damages {
				if err := os.WriteFile(file, damage(), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := g.try("restore", object{"path": "bk", "confirm": true})
				if err == nil || tea.AsError(err).Type != tea.ValidationError || !strings.Contains(err.Error(), bk+unchanged) || strings.Contains(err.Error(), "restore.new") || strings.Contains(err.Error(), "graph.restore") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			g.fails("restore", object{"path": "bk", "confirm": true}, tea.ValidationError, bk+unchanged)
			same(t, "entities", g.call("stats", object{})["entities"], int64(300))
			if err := os.WriteFile(filepath.Join(root, "bk", "graph.json"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			g.fails("restore", object{"path": "bk", "confirm": true}, tea.ValidationError, bk+unchanged)
			g.fails("restore", object{"path": "bk/graph.json", "confirm": true}, tea.ValidationError, "graph.json is a file; a backup is a folder that graph.backup has written")
		})
	}
}

// What is a folder in the place of a file, or the reverse, is named with a remedy.
func TestFoldersInThePlaceOfFiles(t *testing.T) {
	t.Parallel()
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t, object{"backend": name, "path": filepath.Join(t.TempDir(), "g")})
			g.needLibrary()
			g.link("a-knows-b")
			dir := g.settings["graph"].(object)["path"].(string)
			g.close()
			original := files(t, dir)
			for file := range original {
				if strings.HasSuffix(file, ".seal") {
					continue
				}
				path := filepath.Join(dir, file)
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
				open(t, object{"backend": name, "path": dir}).fails("stats", object{}, tea.ValidationError, path+" is")
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(original[file]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, map[string]string{"memory": "graph.sqlite", "cozo": "graph.cozo", "cypher": "graph.kuzu"}[name]), []byte(strings.Repeat("a text of someone else\n", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
			open(t, object{"backend": name, "path": dir}).fails("stats", object{}, tea.ValidationError, dir)
		})
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	open(t, object{"path": link}).fails("stats", object{}, tea.ValidationError, link+" is a link to nowhere, which does not exist; create that folder, or set another path")
}

func TestARestoreThroughALink(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	for link, target := range map[string]string{"link": "kb", "out": outside} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "kb"), 0o700); err != nil {
		t.Fatal(err)
	}
	g := openWith(t, object{"graph": object{"path": filepath.Join(root, "link")}, "file": object{"root": root}})
	g.link("a-knows-b")
	for _, path := range []string{"kb", "link"} {
		g.fails("restore", object{"path": path, "confirm": true}, tea.ValidationError, "is the graph itself, or in its folder")
	}
	other := openWith(t, object{"graph": object{"path": outside}})
	other.link("a-knows-c")
	g.fails("restore", object{"path": "out", "confirm": true}, tea.PermissionDenied, "leads out of settings.file.root")
	same(t, "the graph", short(g.call("get_relations", object{"entity_id": "a"})["relations"]), "a-knows-b")
}
