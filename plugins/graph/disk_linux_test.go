package graph_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

// onDisk runs a test on each backend with a small disk.
func onDisk(t *testing.T, size string, test func(t *testing.T, disk *smalldisktest.Disk, settings object)) {
	t.Helper()
	t.Parallel()
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := smalldisktest.New(t, size)
			test(t, disk, object{"backend": name, "path": filepath.Join(disk.Dir, "graph"), "lock_timeout": 0})
		})
	}
}

// fillUp stores entities with relations until the disk is full, and returns their
// number.
func (g *opened) fillUp(from int) int {
	g.t.Helper()
	text := strings.Repeat("lorem ipsum ", 400)
	for n := from; n < from+100_000; n++ {
		_, err := g.try("store_entities", object{"entities": []any{object{
			"entity_id": fmt.Sprintf("e%d", n), "entity_type": "thing", "text": fmt.Sprintf("word%d %s", n, text), "embedding": []any{float64(n), 1.0},
		}}})
		if err != nil {
			if tea.AsError(err).Type != tea.ResourceExhausted {
				g.t.Fatalf("store an entity on a full disk: %v", err)
			}
			return n
		}
	}
	g.t.Fatal("the disk does not fill")
	return 0
}

// has checks that the graph has the entities up to n, with their indexes, and
// that of the next one there is all or nothing.
func (g *opened) has(n int) {
	g.t.Helper()
	s := g.call("stats", object{})
	stored := int(s["entities"].(int64))
	if stored != n && stored != n+1 {
		g.t.Fatalf("the graph has %d entities, and %d were acknowledged", stored, n)
	}
	same(g.t.(*testing.T), "embeddings", s["embeddings"], int64(stored))
	for _, i := range []int{0, n / 2, n - 1, stored - 1} {
		id := fmt.Sprintf("e%d", i)
		g.call("get_entity", object{"entity_id": id})
		same(g.t.(*testing.T), "found by word", ids(g.call("search", object{"query": fmt.Sprintf("word%d", i)})["results"]), id)
		r := g.call("vector_search", object{"embedding": []any{float64(i), 1.0}, "limit": 2})
		if !strings.Contains(" "+ids(r["results"])+" ", " "+id+" ") {
			g.t.Errorf("found by embedding: %v, not %s", r["results"], id)
		}
	}
}

func (g *opened) close() {
	g.t.Helper()
	if err := g.instance.Close(); err != nil {
		g.t.Fatal(err)
	}
}

// A full disk refuses what is new and keeps what was acknowledged. Everything can
// be read, and there is no need to open the graph again once there is room.
func TestAFullDiskKeepsWhatWasStored(t *testing.T) {
	onDisk(t, "24m", func(t *testing.T, disk *smalldisktest.Disk, settings object) {
		g := open(t, settings)
		g.needLibrary()
		disk.Fill(t, 2<<20)
		n := g.fillUp(0)
		g.has(n)
		g.fails("store_entity", object{"entity_id": "large", "text": strings.Repeat("x", 200<<10)}, tea.ResourceExhausted, "")
		g.has(n)
		disk.Free(t)
		g.call("delete_entity", object{"entity_id": fmt.Sprintf("e%d", n)})
		for i := n; i < n+5; i++ {
			g.call("store_entity", object{"entity_id": fmt.Sprintf("e%d", i), "text": fmt.Sprintf("word%d", i), "embedding": []any{float64(i), 1.0}})
		}
		g.has(n + 5)
		g.close()
		again := open(t, settings)
		again.has(n + 5)
	})
}

// A graph on a full disk opens, and is read.
func TestAGraphOpensOnAFullDisk(t *testing.T) {
	onDisk(t, "24m", func(t *testing.T, disk *smalldisktest.Disk, settings object) {
		g := open(t, settings)
		g.needLibrary()
		disk.Fill(t, 2<<20)
		n := g.fillUp(0)
		_ = g.instance.Close() // there is no room to tidy up
		if err := os.Truncate(filepath.Join(disk.Dir, "filler"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		disk.Fill(t, 0)
		again := open(t, settings)
		again.has(n)
		again.close()
		disk.Free(t)
		after := open(t, settings)
		after.has(n)
		after.call("delete_entity", object{"entity_id": fmt.Sprintf("e%d", n)})
		after.call("store_entity", object{"entity_id": fmt.Sprintf("e%d", n), "text": fmt.Sprintf("word%d", n), "embedding": []any{float64(n), 1.0}})
		after.has(n + 1)
	})
}

// A new graph is not created on a full disk, and is created once there is room.
func TestANewGraphOnAFullDisk(t *testing.T) {
	onDisk(t, "24m", func(t *testing.T, disk *smalldisktest.Disk, settings object) {
		g := open(t, object{"backend": settings["backend"], "path": t.TempDir()})
		g.needLibrary()
		for _, free := range []int64{0, 4 << 10, 16 << 10, 64 << 10} {
			disk.Fill(t, free)
			g := open(t, settings)
			if _, err := g.try("store_entity", object{"entity_id": "a"}); err == nil {
				t.Logf("%d bytes are enough", free)
			} else if e := tea.AsError(err); e.Type != tea.ResourceExhausted {
				t.Errorf("with %d free bytes: %v", free, err)
			}
			if err := g.instance.Close(); err != nil {
				t.Logf("close: %v", err)
			}
			disk.Free(t)
		}
		g = open(t, settings)
		g.call("store_entity", object{"entity_id": "b"})
		g.call("get_entity", object{"entity_id": "b"})
	})
}

// A disk that cannot be written can be read, or says so.
func TestAGraphOnAReadOnlyDisk(t *testing.T) {
	onDisk(t, "24m", func(t *testing.T, disk *smalldisktest.Disk, settings object) {
		g := open(t, settings)
		g.needLibrary()
		g.link("a-knows-b")
		g.close()
		disk.Protect(t, true)
		g = open(t, settings)
		for _, call := range []struct {
			action string
			params object
		}{{"stats", object{}}, {"store_entity", object{"entity_id": "c"}}} {
			_, err := g.try(call.action, call.params)
			if err == nil || tea.AsError(err).Type != tea.PermissionDenied {
				t.Errorf("graph.%s on a read-only disk: %v", call.action, err)
			}
		}
		disk.Protect(t, false)
		g.call("store_entity", object{"entity_id": "c"})
		same(t, "relations", short(g.call("get_relations", object{"entity_id": "a"})["relations"]), "a-knows-b")
	})
}
