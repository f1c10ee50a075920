package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/assemble"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Context runs the suite of context.assemble: the sources of a context and their scores must not depend on the store or
// the ranking of its full-text search. open must return empty stores; the suite closes LongTerm and Vectors.
func Context(t *testing.T, open func(t *testing.T) *store.Stores) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, c *assembling){
		"entries":           contextEntries,
		"entries and files": contextFiles,
		"vectors":           contextVectors,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, assembles(t, open(t)))
		})
	}
}

type assembling struct {
	*assemble.Assembler
	stores *store.Stores
	files  *file.Files
}

func assembles(t *testing.T, s *store.Stores) *assembling {
	t.Helper()
	c := &assembling{stores: s}
	at := clock.Fixed(Start, func() time.Duration { return 0 })
	c.files = file.New(file.Options{Documents: s.Metadata, Blobs: s.Blobs, Clock: at, Tokens: tokens.Count})
	sessions := session.New(session.Options{Documents: s.Metadata, Files: c.files, Clock: at})
	dir := t.TempDir()
	c.Assembler = assemble.New(assemble.Options{
		Identity: func(context.Context) (string, error) { return "test", nil }, IndexDir: func() (string, error) { return dir, nil },
		Files: c.files, LTM: s.LongTerm, Sessions: sessions, Vectors: s.Vectors, Language: "english",
	})
	t.Cleanup(func() {
		for _, part := range []interface{ Close() error }{c.Assembler, s.LongTerm, s.Vectors} {
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// contextNotes are entries of unequal lengths, with common and rare words.
var contextNotes = map[string]string{
	"firm/acme/torque":  `"Tighten the bolts of the pump to 47 newton metres."`,
	"firm/acme/leak":    `"The pump leaks at the flange when it is cold; a colder pump leaks more, and the bolts of the flange work loose over the winter."`,
	"firm/acme/lunch":   `"Lunch is served at noon."`,
	"firm/acme/long":    `{"title": "Report of the visit", "body": "` + strings.Repeat("We looked at valves, hoses, the pump and the weather. ", 12) + `"}`,
	"user/7/accent":     `"Die Pümpe steht im Café, the pump does not."`,
	"user/7/prefix":     `["pumping", "pumped", "pumps", 5, null]`,
	"elsewhere/flanges": `"Flanges, flanges, flanges."`,
}

func (c *assembling) notes(t *testing.T) {
	t.Helper()
	var entries []store.Entry
	for key, text := range contextNotes {
		entries = append(entries, store.Entry{Key: key, Value: json.RawMessage(text)})
	}
	entries = append(entries, store.Entry{Key: "firm/acme/tagged", Value: json.RawMessage(`"See the drawing."`), Metadata: json.RawMessage(`{"about": "flange of the pump"}`)})
	slices.SortFunc(entries, func(a, b store.Entry) int { return strings.Compare(a.Key, b.Key) })
	if _, err := c.stores.LongTerm.Store(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
}

// sources returns the sources of a context, "SCOPE PATH SCORE" each.
func (c *assembling) sources(t *testing.T, r assemble.Request) []string {
	t.Helper()
	r.SimilarityWeight, r.PriorityWeight, r.MaxTokens, r.Collection = assemble.SimilarityWeight, assemble.PriorityWeight, 8000, assemble.DefaultCollection
	if r.Method == "" {
		r.Method = assemble.Auto
	}
	made, err := c.Assemble(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{string(made.Method)}
	for _, s := range made.Sources {
		found = append(found, fmt.Sprintf("%s %s %.3f", s.Scope, s.Path, s.Score))
	}
	return found
}

func contextEntries(t *testing.T, c *assembling) {
	c.notes(t)
	for query, expected := range map[string][]string{
		"flange of the pump": {
			"bm25", "firm firm/acme/leak 0.940", "firm firm/acme/tagged 0.910", "app elsewhere/flanges 0.874", "firm firm/acme/long 0.446", "user user/7/prefix 0.422",
			"firm firm/acme/torque 0.400",
		},
		"pump*": {
			"bm25", "user user/7/prefix 0.895", "firm firm/acme/long 0.875", "user user/7/accent 0.816", "firm firm/acme/leak 0.793", "firm firm/acme/tagged 0.770",
			"firm firm/acme/torque 0.735",
		},
		`"the bolts" torque`: {"bm25", "firm firm/acme/torque 0.940", "firm firm/acme/leak 0.484"},
		"nothing of it":      {"bm25"},
	} {
		want(t, query, c.sources(t, assemble.Request{Query: query, Threshold: 0.4}), expected)
	}
}

func contextFiles(t *testing.T, c *assembling) {
	c.notes(t)
	for path, text := range map[string]string{
		"firm/acme/pump.md":  "# Pump\n\nThe pump is mounted on a flange.\n",
		"docs/drawings.md":   "Drawings of flanges are in the cabinet.",
		"firm/acme/noon.txt": "At noon.",
	} {
		if _, err := c.files.Store(t.Context(), file.Draft{Path: path, Content: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	entity := "acme"
	want(t, "everywhere", c.sources(t, assemble.Request{Query: "flange of the pump", Threshold: 0.45}), []string{
		"bm25", "firm firm/acme/pump.md 0.940", "firm firm/acme/leak 0.875", "firm firm/acme/tagged 0.857", "app elsewhere/flanges 0.735", "app docs/drawings.md 0.582",
		"firm firm/acme/long 0.515", "user user/7/prefix 0.510", "user user/7/accent 0.470", "firm firm/acme/torque 0.454",
	})
	want(t, "a layer", c.sources(t, assemble.Request{Query: "flange", Threshold: 0.3, Layers: []assemble.Layer{{Scope: assemble.Firm, EntityID: &entity}}}), []string{
		"bm25", "firm firm/acme/leak 0.940", "firm firm/acme/pump.md 0.921", "firm firm/acme/tagged 0.921",
	})
}

// contextVectors checks the sources found by vectors, for databases without full-text search too.
func contextVectors(t *testing.T, c *assembling) {
	c.notes(t)
	vector := func(text string) []float32 {
		lower := strings.ToLower(text)
		return []float32{0.1, float32(strings.Count(lower, "pump")), float32(strings.Count(lower, "flange")), float32(strings.Count(lower, "noon"))}
	}
	embed := func(ctx context.Context, texts []string) (vectors [][]float32, model string, err error) {
		for _, text := range texts {
			vectors = append(vectors, vector(text))
		}
		return vectors, "counts", ctx.Err()
	}
	r := recall.New(recall.Options{LTM: c.stores.LongTerm, Vectors: c.stores.Vectors, Files: c.files})
	if _, err := r.Backfill(t.Context(), recall.Backfill{Collection: assemble.DefaultCollection, BatchSize: 10, Limit: 5, Embed: embed}); err != nil {
		t.Fatal(err)
	}
	one := func(ctx context.Context, query string) ([]float32, error) { return vector(query), ctx.Err() }
	want(t, "some with vectors", c.sources(t, assemble.Request{Query: "flange of the pump", Threshold: 0.5, Embed: one}), []string{
		"cosine", "firm firm/acme/leak 0.940", "user user/7/prefix 0.895", "user user/7/accent 0.816", "firm firm/acme/torque 0.735", "firm firm/acme/long 0.734",
		"app elsewhere/flanges 0.675",
	})
	want(t, "by words", c.sources(t, assemble.Request{Query: "flange of the pump", Threshold: 0.5, Embed: one, Method: assemble.BM25}), []string{
		"bm25", "firm firm/acme/leak 0.940", "firm firm/acme/tagged 0.910", "app elsewhere/flanges 0.874",
	})
}
