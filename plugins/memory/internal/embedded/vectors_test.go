package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

type vectorDevice struct {
	store.VectorIndex
	dir    string
	driver engine.Driver
	said   *bytes.Buffer // what it logs; read after close
	close  func()
}

func openVectors(t *testing.T, driver engine.Driver, dir string) *vectorDevice {
	t.Helper()
	d := &vectorDevice{dir: dir, driver: driver, said: &bytes.Buffer{}}
	m, err := devicetest.OpenMemory(t.Context(), driver, store.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(d.said, nil))}, vector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.VectorIndex = m.Vectors
	var once sync.Once
	d.close = func() {
		once.Do(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(d.close)
	return d
}

// eachVectors runs a test on every database of this build.
func eachVectors(t *testing.T, test func(t *testing.T, d *vectorDevice)) {
	t.Helper()
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) { test(t, openVectors(t, driver, t.TempDir())) })
}

func (d *vectorDevice) put(t *testing.T, items ...store.VectorItem) {
	t.Helper()
	if err := d.Store(t.Context(), "c", items...); err != nil {
		t.Fatal(err)
	}
}

func (d *vectorDevice) near(t *testing.T, query store.VectorQuery) []string {
	t.Helper()
	hits, err := d.Search(t.Context(), "c", query)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, hit := range hits {
		ids = append(ids, hit.ID)
	}
	return ids
}

var (
	east  = store.VectorItem{ID: "east", Text: "the east", Embedding: []float32{1, 0, 0}, Metadata: map[string]any{"kind": "wind", "n": int64(1)}}
	north = store.VectorItem{ID: "north", Text: "the north", Embedding: []float32{0, 2, 0}, Metadata: map[string]any{"kind": "wind", "n": int64(2)}}
	up    = store.VectorItem{ID: "up", Text: "above", Embedding: []float32{0, 0.1, 3}}
)

func TestNearestSeesEveryChangeAtOnce(t *testing.T) {
	eachVectors(t, func(t *testing.T, d *vectorDevice) {
		query := store.VectorQuery{Embedding: []float32{1, 0.5, 0}, K: 10, MinScore: 0.01}
		want(t, "of nothing", d.near(t, query), []string{})
		d.put(t, east, north, up)
		want(t, "near", d.near(t, query), []string{"east", "north", "up"})
		d = d.reopen(t)
		want(t, "after a restart", d.near(t, query), []string{"east", "north", "up"})
		turned := east
		turned.Embedding = []float32{-1, 0, 0}
		d.put(t, turned)
		want(t, "after a change", d.near(t, query), []string{"north", "up"})
		if n, err := d.Delete(t.Context(), "c", "north", "none"); err != nil || n != 1 {
			t.Errorf("Delete: %d, %v", n, err)
		}
		want(t, "after a removal", d.near(t, query), []string{"up"})
		d = d.reopen(t)
		want(t, "after another restart", d.near(t, query), []string{"up"})
		items, err := d.Get(t.Context(), "c", "up", "north", "east")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "items", items, []store.VectorItem{up, turned})
	})
}

func (d *vectorDevice) reopen(t *testing.T) *vectorDevice {
	t.Helper()
	d.close()
	return openVectors(t, d.driver, d.dir)
}

func TestNearestFilterLosesNothing(t *testing.T) {
	eachVectors(t, func(t *testing.T, d *vectorDevice) {
		d.put(t, east, north, up)
		for i := range 200 {
			d.put(t, store.VectorItem{ID: fmt.Sprint(i), Embedding: []float32{1, 0.5, float32(i) / 1000}, Metadata: map[string]any{"kind": "noise"}})
		}
		query := store.VectorQuery{Embedding: []float32{1, 0.5, 0}, K: 2, Filter: storetest.Filter(t, map[string]any{"kind": "wind"})}
		want(t, "filtered", d.near(t, query), []string{"east", "north"})
	})
}

func TestWhatIsNoVectorOfTheCollectionIsRefused(t *testing.T) {
	eachVectors(t, func(t *testing.T, d *vectorDevice) {
		d.put(t, east)
		for name, item := range map[string]store.VectorItem{
			"dimension": {ID: "x", Embedding: []float32{1, 2}}, "empty": {ID: "x"}, "no id": {Embedding: []float32{1, 2, 3}},
		} {
			err := d.Store(t.Context(), "c", north, item)
			if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError {
				t.Errorf("%s: %v, want a validation_error", name, err)
			}
		}
		want(t, "nothing of them was written", d.near(t, store.VectorQuery{Embedding: []float32{1, 1, 1}, K: 10}), []string{"east"})
		_, err := d.Search(t.Context(), "c", store.VectorQuery{Embedding: []float32{1}, K: 1})
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError {
			t.Errorf("query of another dimension: %v", err)
		}
	})
}

func TestCompanionFilesAreRebuilt(t *testing.T) {
	eachVectors(t, func(t *testing.T, d *vectorDevice) {
		random := rand.New(rand.NewPCG(1, 2))
		items := make([]store.VectorItem, 150)
		for i := range items {
			items[i] = store.VectorItem{ID: fmt.Sprint(i), Embedding: []float32{random.Float32(), random.Float32(), random.Float32()}}
		}
		d.put(t, items...)
		query := store.VectorQuery{Embedding: []float32{1, 0.2, 0.4}, K: 150}
		before := d.near(t, query)
		d.close()
		files, err := filepath.Glob(filepath.Join(d.dir, "vectors", "*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		// The file ends with the vectors, 16 bytes each. A search reads them, and the
		// codes before them, when it needs them.
		zeros := func(at int) []byte {
			b := bytes.Clone(data)
			clear(b[len(b)-at:][:16])
			return b
		}
		for name, broken := range map[string][]byte{
			"missing": nil, "cut": data[:len(data)/2], "foreign": []byte("hello"),
			"a vector": zeros(100 * 16), "a block": zeros(150*16 + 11_600),
		} {
			if err := os.Remove(files[0]); err != nil {
				t.Fatal(err)
			}
			if broken != nil {
				if err := os.WriteFile(files[0], broken, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			d = openVectors(t, d.driver, d.dir)
			want(t, name, d.near(t, query), before)
			d.close()
		}
	})
}

// A process was killed after changes that its companion file does not have, and the
// file is damaged at any place: all rows are found.
func TestDamagedCompanionOfAKilledProcessHidesNoRow(t *testing.T) {
	eachVectors(t, func(t *testing.T, d *vectorDevice) {
		random := rand.New(rand.NewPCG(3, 4))
		items := make([]store.VectorItem, 200)
		for i := range items {
			items[i] = store.VectorItem{ID: fmt.Sprint(i), Embedding: []float32{random.Float32(), random.Float32(), random.Float32()}}
		}
		d.put(t, items[:180]...)
		query := store.VectorQuery{Embedding: []float32{1, 0.2, 0.4}, K: 200}
		d.near(t, query)
		d = d.reopen(t) // writes the file
		d.put(t, items[180:]...)
		all := d.near(t, query)
		left := t.TempDir()
		if err := os.CopyFS(left, os.DirFS(d.dir)); err != nil {
			t.Fatal(err)
		}
		d.close()
		files, err := filepath.Glob(filepath.Join(left, "vectors", "*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(left, files[0])
		if err != nil {
			t.Fatal(err)
		}
		for at := 3; at < len(data); at += len(data) / 20 {
			changed := bytes.Clone(data)
			changed[at] ^= 4
			for what, b := range map[string][]byte{"cut": data[:at], "changed": changed} {
				dir := filepath.Join(t.TempDir(), "memory")
				if err := errors.Join(os.CopyFS(dir, os.DirFS(left)), os.WriteFile(filepath.Join(dir, name), b, 0o600)); err != nil {
					t.Fatal(err)
				}
				broken := openVectors(t, d.driver, dir)
				want(t, fmt.Sprint(what, " at ", at), broken.near(t, query), all)
				broken.close()
			}
		}
	})
}

func TestCompanionIsKeptWhenRemovalsAreForgotten(t *testing.T) {
	eachVectors(t, func(t *testing.T, d *vectorDevice) {
		query := store.VectorQuery{Embedding: []float32{1, 0.5, 0}, K: 10, MinScore: 0.01}
		d.put(t, up, north)
		for range 3 {
			d.put(t, east)
			d.near(t, query)
			d = d.reopen(t)
			if _, err := d.Delete(t.Context(), "c", "east"); err != nil {
				t.Fatal(err)
			}
			d.near(t, query)
			d = d.reopen(t)
			want(t, "near", d.near(t, query), []string{"north", "up"})
			d.close()
			if strings.Contains(d.said.String(), "rebuilt") {
				t.Error(d.said)
			}
			d = d.reopen(t)
		}
		d.put(t, east)
		if _, _, err := d.Drop(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		d.put(t, up)
		want(t, "near, in a new collection", d.near(t, query), []string{"up"})
		d = d.reopen(t)
		want(t, "near, after a restart", d.near(t, query), []string{"up"})
		d.close()
		if strings.Contains(d.said.String(), "rebuilt") {
			t.Error(d.said)
		}
	})
}
