package graph_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/graph"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestABackupIsRestored(t *testing.T) {
	t.Parallel()
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			g := openWith(t, object{"graph": object{"backend": name, "path": t.TempDir()}, "file": object{"root": root}})
			g.needLibrary()
			g.link("a-knows-b")
			r := g.call("backup", object{"path": "copy"})
			same(t, "path", r["path"], filepath.Join(root, "copy"))
			g.fails("backup", object{"path": "copy"}, tea.ValidationError, "exists")
			g.fails("backup", object{"path": "../copy"}, tea.PermissionDenied, "")
			g.link("a-knows-c")
			g.fails("restore", object{"path": "copy", "confirm": false}, tea.ValidationError, "set confirm: true")
			g.fails("restore", object{"path": "none", "confirm": true}, tea.NotFound, "is not a backup of a graph")
			g.call("restore", object{"path": "copy", "confirm": true})
			same(t, "after the restore", short(g.call("get_relations", object{"entity_id": "a"})["relations"]), "a-knows-b")
			g.link("a-knows-d")
			same(t, "after a write", short(g.call("get_relations", object{"entity_id": "a"})["relations"]), "a-knows-b a-knows-d")

			copied := openWith(t, object{"graph": object{"path": filepath.Join(root, "copy")}})
			same(t, "the copy itself", short(copied.call("get_relations", object{"entity_id": "a"})["relations"]), "a-knows-b")
		})
	}
}

// A checkout would choose the code that is loaded.
func TestAWorkflowCannotChooseTheLibrary(t *testing.T) {
	t.Parallel()
	raw := tea.Settings{"graph": encode(t, object{"path": t.TempDir(), "backend": "cypher", "library": "/tmp/libtea-kuzu.so"})}
	bundle := graph.Bundle()
	instance, err := bundle.NewInstance(t.Context(), raw)
	if err == nil {
		instance.Close()
	}
	if err == nil || tea.AsError(err).Type != tea.ValidationError || !strings.Contains(err.Error(), "library") {
		t.Errorf("got %v", err)
	}
}

// Nothing is written between a backup and the end of the process.
func TestABackupLeavesTheGraphAsItIs(t *testing.T) {
	t.Parallel()
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := object{"graph": object{"backend": name, "path": t.TempDir()}, "file": object{"root": t.TempDir()}}
			once := func(action string, params object) object {
				t.Helper()
				g := openWith(t, settings)
				defer g.close()
				return g.call(action, params)
			}
			g := openWith(t, settings)
			g.needLibrary()
			g.close()
			once("store_entity", object{"entity_id": "a"})
			for _, copied := range []string{"first", "second", "third"} {
				once("backup", object{"path": copied})
				same(t, "entities", once("stats", object{})["entities"], int64(1))
			}
		})
	}
}

// restoreStates are the folders of a restore, one of which a crash leaves.
var restoreStates = []string{"restore.new", "restore.ready", "restore.move"}

// interrupted returns the folder of a graph with the relation a-is-new, in which a crash
// has interrupted a restore of one with a-is-old.
func interrupted(t *testing.T, state, backend string) string {
	t.Helper()
	dir, old := t.TempDir(), filepath.Join(t.TempDir(), "old")
	for path, relation := range map[string]string{dir: "a-is-new", old: "a-is-old"} {
		g := open(t, object{"path": path, "backend": backend})
		g.needLibrary()
		g.link(relation)
		if err := g.instance.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(old, "owner.lock")); err != nil {
		t.Fatal(err)
	}
	if state == "restore.move" { // the own files are gone, some are moved
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != "owner.lock" {
				if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Rename(filepath.Join(old, "graph.json"), filepath.Join(dir, "graph.json")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(old, filepath.Join(dir, state)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestARestoreContinuesAfterACrash(t *testing.T) {
	t.Parallel()
	for _, state := range restoreStates {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			dir := interrupted(t, state, "memory")
			want := "a-is-old"
			if state == "restore.new" {
				want = "a-is-new"
			}
			g := open(t, object{"path": dir})
			same(t, "relations", short(g.call("get_relations", object{"entity_id": "a"})["relations"]), want)
			if _, err := os.Lstat(filepath.Join(dir, state)); err == nil {
				t.Errorf("%s was not removed", state)
			}
		})
	}
}

// The host repeats a call whose process has ended.
func TestARestoreSucceedsAfterOneThatACrashInterrupted(t *testing.T) {
	t.Parallel()
	for _, backend := range backends(t) {
		for _, state := range restoreStates {
			t.Run(backend+" "+state, func(t *testing.T) {
				t.Parallel()
				dir, root := interrupted(t, state, backend), t.TempDir()
				backup := open(t, object{"path": filepath.Join(root, "backup"), "backend": backend})
				backup.link("a-is-restored")
				if err := backup.instance.Close(); err != nil {
					t.Fatal(err)
				}
				g := openWith(t, object{"graph": object{"path": dir}, "file": object{"root": root}})
				same(t, "restore", g.call("restore", object{"path": "backup", "confirm": true})["success"], true)
				same(t, "relations", short(g.call("get_relations", object{"entity_id": "a"})["relations"]), "a-is-restored")
				for _, left := range restoreStates {
					if _, err := os.Lstat(filepath.Join(dir, left)); err == nil {
						t.Errorf("%s was not removed", left)
					}
				}
			})
		}
	}
}

func TestFoldersThatAreRefused(t *testing.T) {
	t.Parallel()
	write := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		prepare func(dir string)
		backend string
		kind    tea.ErrorType
		text    string
	}{
		"files of others":    {func(dir string) { write(dir, "main.go", "package x") }, "memory", tea.ValidationError, "has other files, such as main.go, but no graph"},
		"a damaged marker":   {func(dir string) { write(dir, "graph.json", "{") }, "memory", tea.ValidationError, "graph.json is damaged or belongs to another program"},
		"a newer format":     {func(dir string) { write(dir, "graph.json", `{"format":3,"backend":"memory"}`) }, "memory", tea.ValidationError, "has format 3, which is newer than the format 2"},
		"another backend":    {func(dir string) { write(dir, "graph.json", `{"format":1,"backend":"cozo","ready":true}`) }, "memory", tea.ValidationError, "was created by the backend cozo and cannot be opened by memory; set settings.graph.backend: cozo"},
		"a missing database": {func(dir string) { write(dir, "graph.json", `{"format":1,"backend":"memory","ready":true}`) }, "memory", tea.InternalError, "is missing"},
		"a foreign database": {func(dir string) {
			write(dir, "graph.json", `{"format":1,"backend":"memory","ready":true}`)
			write(dir, "graph.sqlite", "this is a text and not a database")
		}, "memory", tea.ValidationError, "is not a database of a graph"},
		"an unknown backend": {func(dir string) { write(dir, "graph.json", `{"format":1,"backend":"later","ready":true}`) }, "", tea.ValidationError, `was created by the backend "later"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.prepare(dir)
			before := files(t, dir)
			settings := object{"path": dir}
			if c.backend != "" {
				settings["backend"] = c.backend
			}
			open(t, settings).fails("stats", object{}, c.kind, c.text)
			after := files(t, dir)
			delete(after, "owner.lock")
			same(t, "the files", after, before)
		})
	}
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

func TestAGraphIsUsedByOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := open(t, object{"path": dir, "backend": "memory"})
	one.link("a-knows-b")
	// Another bundle is as another process: it has its own lock.
	other := open(t, object{"path": dir, "lock_timeout": 0})
	other.fails("stats", object{}, tea.ConnectionError, "is in use by process")
	if err := one.instance.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "after the end of the first", other.call("stats", object{})["entities"], int64(2))
}

func TestInstancesOfABundleShareAGraph(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bundle := graph.Bundle()
	settings := tea.Settings{"graph_path": encode(t, dir), "graph_backend": encode(t, "memory")}
	var all []*opened
	for range 2 {
		instance, err := bundle.NewInstance(t.Context(), settings)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &opened{t: t, instance: instance})
	}
	all[0].call("store_entity", object{"entity_id": "a"})
	same(t, "seen by the other", all[1].call("stats", object{})["entities"], int64(1))
	if _, err := bundle.NewInstance(t.Context(), tea.Settings{"graph": encode(t, object{"path": dir, "history": 5})}); err == nil {
		t.Error("an instance with other settings was opened")
	}
	if err := all[0].instance.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "after the other has ended", all[1].call("stats", object{})["entities"], int64(1))
	if err := all[1].instance.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.NewInstance(t.Context(), tea.Settings{"graph_backend": encode(t, "oracle")}); err == nil {
		t.Error("an unknown backend was accepted")
	}
}

// A build without a backend says how to get one that has it.
func TestABackendThatTheBuildLacks(t *testing.T) {
	t.Parallel()
	if slices.Contains(graph.Available(), "cozo") {
		t.Skip("this build has all backends")
	}
	dir := t.TempDir()
	open(t, object{"path": dir, "backend": "cozo"}).fails("stats", object{}, tea.DependencyMissing, "tea build --with graph[cozo]")
	if err := os.WriteFile(filepath.Join(dir, "graph.json"), []byte(`{"format":1,"backend":"cozo","ready":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, object{"path": dir}).fails("stats", object{}, tea.DependencyMissing, "was created by the backend cozo: this build of the graph plugin does not include")
}

// A graph that was created without a setting opens on builds without native
// libraries too.
func TestTheDefaultBackendIsInEveryBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, settings := range []object{{"path": dir}, {"path": dir, "backend": "memory"}} {
		g := open(t, settings)
		g.link("a-knows-b")
		same(t, "backend", g.call("stats", object{})["backend"], "memory")
		if err := g.instance.Close(); err != nil {
			t.Fatal(err)
		}
	}
	open(t, object{"path": dir, "backend": "kuzu"}).fails("stats", object{}, tea.ValidationError, "was created by the backend memory and cannot be opened by cypher")
}
