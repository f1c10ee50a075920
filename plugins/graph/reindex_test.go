package graph_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// unpackOld unpacks testdata/words1.tar.gz, which has a graph of each backend with format 1 and
// the stems of Snowball 2.
func unpackOld(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	file, err := os.Open("testdata/words1.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.FileInfo().IsDir() {
			err = os.Mkdir(path, 0o700)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// findsAll checks the results of searches for words whose stems have changed.
func (g *opened) findsAll(when string) {
	g.t.Helper()
	for query, want := range map[string]string{
		"added": "report", "adding": "report", "lateral": "report", "evening": "report", "even": "", "ad": "advert",
		"Bücher": "report", "Buch": "report", "हिन्दी": "hindi", "pump": "advert", "added ad": "advert report",
	} {
		found := g.call("search", object{"query": query})["results"].([]any)
		var ids []string
		for _, f := range found {
			ids = append(ids, f.(object)["id"].(string))
		}
		if len(ids) != len(strings.Fields(want)) || !strings.Contains(want, strings.Join(ids[:min(len(ids), 1)], "")) {
			g.t.Errorf("%s, %q finds %q, want %q", when, query, ids, want)
		}
	}
	if other := g.call("search", object{"namespace": "other", "query": "adds"})["count"]; other != int64(1) {
		g.t.Errorf("%s, another namespace has %v results", when, other)
	}
}

// indexed waits until a graph has the current keys.
func indexed(t *testing.T, dir string) {
	t.Helper()
	marker := filepath.Join(dir, "graph.json")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(marker)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(`"words":"1/`)) && !bytes.Contains(text, []byte("indexing")) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the graph is not indexed: %s", text)
		}
	}
}

func TestAGraphWithOlderStemsIsFoundWhileItIsIndexedAgain(t *testing.T) {
	var log lockedBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	dir := unpackOld(t)
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(dir, name)
			g := openWith(t, object{"graph": object{"backend": name, "path": dir}, "file": object{"root": t.TempDir()}})
			g.needLibrary()
			g.findsAll("at first")
			g.call("backup", object{"path": "copy"})
			indexed(t, dir)
			g.findsAll("afterwards")
			g.call("delete_entity", object{"entity_id": "report", "detach": true})
			g.call("restore", object{"path": "copy", "confirm": true})
			g.findsAll("after a restore")
			if !strings.Contains(log.String(), "the search index of the graph is rebuilt in the background, because its words were split and stemmed by another version of tea") {
				t.Errorf("the log has %s", log.String())
			}
			entity := g.call("get_entity", object{"entity_id": "report"})["entity"].(object)
			same(t, "properties", fmt.Sprint(entity["properties"]), "map[note:Bücher]")
			same(t, "entities with an embedding", ids(g.call("vector_search", object{"embedding": []any{0.5, 1.0}})["results"]), "report")
		})
	}
}

// A process may end before everything is indexed: the next one continues.
func TestIndexingAgainContinuesAfterTheLastEntity(t *testing.T) {
	dir := t.TempDir()
	fill := open(t, object{"path": dir})
	var entities []any
	for i := range 1200 {
		entities = append(entities, object{"entity_id": fmt.Sprintf("pump-%04d", i), "text": "added in the evening"})
	}
	fill.call("store_entities", object{"entities": entities})
	if err := fill.instance.Close(); err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(dir, "graph.json")
	text, err := os.ReadFile(marker)
	if err != nil {
		t.Fatal(err)
	}
	now := regexp.MustCompile(`"words":"[^"]*"`).FindString(string(text))
	state := strings.Replace(string(text), now, `"words":"0","indexing":`+strings.TrimPrefix(now, `"words":`)+`,"reindexed":{"namespace":"default","entity":"pump-0600"}`, 1)
	if err := os.WriteFile(marker, []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	g := open(t, object{"path": dir})
	for range 2 {
		same(t, "entities with the word", g.call("search", object{"query": "added", "limit": int64(1000)})["count"], int64(1000))
		indexed(t, dir)
	}
	same(t, "entities", g.call("stats", object{})["entities"], int64(1200))
}

// lockedBuffer is a buffer of several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
