package fulltext

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// exhaustive scores all documents one term after the other, without blocks, bounds or windows.
func exhaustive(t *testing.T, x *Index, text string, o SearchOptions) []Hit {
	t.Helper()
	q := parseQuery(text, x.lang)
	for _, text := range o.Require {
		p := queryParser{lang: x.lang, seen: map[term]bool{}}
		p.phrase(text)
		q.phrases = append(q.phrases, p.query.phrases...)
	}
	var hits []Hit
	err := x.search(context.Background(), func(s *search) {
		if s.docs == 0 {
			return
		}
		tagged := make([]map[uint32]uint32, len(s.views))
		for i := range s.views {
			tagged[i] = counts(s, i, s.views[i].wordLists(words.Keys{"\x02" + o.Tag}))
		}
		for _, phrase := range q.phrases {
			for i := range s.views {
				s.matchPhrase(i, phrase)
			}
		}
		scores := make([]map[uint32]float64, len(s.views))
		average := float64(s.words) / float64(s.docs)
		for _, term := range q.terms {
			found, df := make([]map[uint32]uint32, len(s.views)), 0
			for i := range s.views {
				found[i] = counts(s, i, s.lists(i, term))
				df += len(found[i])
			}
			for i := range s.views {
				if scores[i] == nil {
					scores[i] = map[uint32]float64{}
				}
				for ord, tf := range found[i] {
					const flat = k1 * (1 - b)
					scores[i][ord] += idf(s.docs, df) * (k1 + 1) * float64(tf) / (float64(tf) + flat + k1*b/average*float64(s.views[i].lens[ord]))
				}
			}
		}
		for i := range s.views {
			v := &s.views[i]
			for ord, score := range scores[i] {
				if _, ok := tagged[i][ord]; v.accepts(ord) && (ok || o.Tag == "") {
					hits = append(hits, Hit{v.ids[ord], score})
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return hits
}

// counts returns the live documents of lists, and how often they have one of the forms.
func counts(s *search, view int, lists []list) map[uint32]uint32 {
	v, found := &s.views[view], map[uint32]uint32{}
	for _, l := range lists {
		c := v.cursor(l, &s.mem.scratch)
		for _, p := range c.all(nil) {
			if !v.dead.has(p.ord) {
				found[p.ord] += p.tf
			}
		}
	}
	return found
}

// limitCorpus makes texts of very different lengths, with frequent and rare words and many equal texts.
type limitCorpus struct {
	rng   *rand.Rand
	words []string
	equal bool
}

func (c *limitCorpus) word() string {
	f := c.rng.Float64()
	return c.words[int(float64(len(c.words))*f*f*f*f)]
}

func (c *limitCorpus) text() string {
	if c.equal && c.rng.IntN(3) > 0 {
		return c.words[c.rng.IntN(3)] + " reports " + c.words[0]
	}
	n := 1 + c.rng.IntN(12)
	if c.rng.IntN(10) == 0 {
		n *= 20
	}
	var words []string
	for range n {
		words = append(words, c.word())
	}
	return strings.Join(words, " ")
}

func (c *limitCorpus) query() string {
	var parts []string
	for range 1 + c.rng.IntN(4) {
		w := c.word()
		switch c.rng.IntN(12) {
		case 0:
			w = string([]rune(w)[:1]) + "*"
		case 1:
			w = `"` + w + " " + c.word() + `"`
		}
		parts = append(parts, w)
	}
	return strings.Join(parts, " ")
}

// A search with a limit returns the first hits of the exhaustive search, with the same scores.
func TestALimitReturnsTheSameBestHits(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 3))
			c := &limitCorpus{rng: rng, words: slices.Clone(corpusWords), equal: seed%2 == 1}
			for n := range uint64(300) {
				c.words = append(c.words, zipfWord(n))
			}
			x := mustOpen(t, t.TempDir(), []string{"english", "german", "none"}[seed%3])
			defer x.Close()
			seq := int64(0)
			put := func() {
				seq++
				d := Document{ID: rng.Int64N(9_000), Seq: seq, Tag: []string{"", "/a", "/b", "/rare"}[min(3, rng.IntN(40))], Fields: []Field{{"text", c.text()}}}
				if seed < 2 {
					d.ID = seq // ascending
				}
				if err := x.Put(d); err != nil {
					t.Fatal(err)
				}
			}
			for range []int{6_000, 1_500, 300}[seed%3] {
				put()
			}
			waitMerged(t, x)
			for round := range 3 {
				for range rng.IntN(800) {
					if rng.IntN(3) > 0 {
						put()
						continue
					}
					seq++
					if err := x.Delete(rng.Int64N(9_000), seq); err != nil {
						t.Fatal(err)
					}
				}
				if round%2 == 0 {
					if err := x.Flush(); err != nil {
						t.Fatal(err)
					}
				}
				for range 15 {
					o := SearchOptions{Tag: []string{"", "", "", "/a", "/b", "/rare"}[rng.IntN(6)]}
					if rng.IntN(8) == 0 {
						o.Require = []string{c.word()}
					}
					checkLimits(t, x, c.query(), o)
				}
			}
		})
	}
}

func checkLimits(t *testing.T, x *Index, query string, o SearchOptions) {
	t.Helper()
	want := exhaustive(t, x, query, o)
	for _, limit := range []int{0, 1, 2, 10, 33, 128, 1000} {
		o.Limit = limit
		r, err := x.Search(context.Background(), query, o)
		if err != nil {
			t.Fatal(err)
		}
		first := want
		if limit > 0 {
			first = want[:min(limit, len(want))]
		}
		if got := slices.Collect(r.All()); !slices.Equal(got, first) || r.Partial() != (limit > 0 && limit <= len(want)) {
			t.Fatalf("Search(%q, %+v) found %d: %v\nwant %d: %v", query, o, len(got), got[:min(len(got), 12)], len(first), first[:min(len(first), 12)])
		}
	}
}

// An index of format 3, whose lists are not in blocks, is read, and its segments remain valid beside newer ones.
func TestAnIndexWithoutBlocksIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/format3")); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("testdata/format3/manifest")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(manifest, []byte("\n"))
	body = regexp.MustCompile(`"analysis":"[^"]*"`).ReplaceAll(body, []byte(`"analysis":"`+words.Analysis()+`"`))
	if err := os.WriteFile(filepath.Join(dir, manifestName), append([]byte(manifestHead(3, body)), body...), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		x := mustOpen(t, dir, "english")
		if x.Lost() != nil || x.Len() != 299 {
			t.Fatalf("%d documents: %v", x.Len(), x.Lost())
		}
		for _, query := range []string{"pump", "pumping", "valve3 sensor", `"sensor failure"`, "v*", "valve1 valve2 pump"} {
			checkLimits(t, x, query, SearchOptions{})
			checkLimits(t, x, query, SearchOptions{Tag: "/other"})
		}
		if r, err := x.Search(context.Background(), "pump", SearchOptions{}); err != nil || r.Len() != 298 {
			t.Errorf("Search found %d, %v", r.Len(), err)
		}
		if err := x.Put(Document{ID: 30, Seq: x.Stats().Seq + 1, Fields: []Field{{"text", "sensor"}}}); err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
