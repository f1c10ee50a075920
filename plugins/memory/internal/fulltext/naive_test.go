package fulltext

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// naive is an independent computation of what the index must answer: it holds
// the live documents as text and looks through all of them.
type naive struct {
	lang *words.Language
	docs map[int64][]Field
}

type naiveWord struct {
	form string
	keys words.Keys
	pos  int
}

func newNaive(t testing.TB, name string) *naive {
	t.Helper()
	lang, err := words.New(name)
	if err != nil {
		t.Fatal(err)
	}
	return &naive{lang: lang, docs: map[int64][]Field{}}
}

// fields returns the words of each field, stop words as gaps.
func (n *naive) fields(id int64) [][]naiveWord {
	var out [][]naiveWord
	for _, f := range n.docs[id] {
		var list []naiveWord
		var c words.Cutter
		c.Cut(n.lang.Normalize(f.Text), 0, func(text []byte, w words.Word) bool {
			if w.Unspaced || !n.lang.IsStop(text) {
				form := n.lang.Form(string(text))
				list = append(list, naiveWord{form, n.lang.Keys(form), w.Pos})
			}
			return true
		})
		out = append(out, list)
	}
	return out
}

func matches(t term, w naiveWord) bool { return t.matches(w.form, w.keys) }

func hasPhrase(words []naiveWord, phrase []phraseTerm) bool {
	for _, start := range words {
		all := true
		for _, t := range phrase {
			at := start.pos - int(phrase[0].offset) + int(t.offset)
			all = all && slices.ContainsFunc(words, func(w naiveWord) bool { return w.pos == at && matches(t.term, w) })
		}
		if all {
			return true
		}
	}
	return false
}

func (n *naive) search(text string) []Hit {
	q := parseQuery(text, n.lang)
	if len(q.terms) == 0 {
		return nil
	}
	total := 0
	tf := map[int64]map[term]int{}
	length := map[int64]int{}
	df := map[term]int{}
	for id := range n.docs {
		tf[id] = map[term]int{}
		for _, words := range n.fields(id) {
			length[id] += len(words)
			for _, w := range words {
				for _, t := range q.terms {
					if matches(t, w) {
						tf[id][t]++
					}
				}
			}
		}
		total += length[id]
		for t := range tf[id] {
			df[t]++
		}
	}
	average := float64(total) / float64(len(n.docs))
	var out []Hit
	for id := range n.docs {
		fields := n.fields(id)
		ok := len(tf[id]) > 0
		for _, phrase := range q.phrases {
			ok = ok && slices.ContainsFunc(fields, func(words []naiveWord) bool { return hasPhrase(words, phrase) })
		}
		if !ok {
			continue
		}
		score := 0.0
		for _, t := range q.terms {
			f, N, d := float64(tf[id][t]), float64(len(n.docs)), float64(df[t])
			if f > 0 {
				score += math.Log(1+(N-d+0.5)/(d+0.5)) * f * 2.2 / (f + 1.2*(0.25+0.75*float64(length[id])/average))
			}
		}
		out = append(out, Hit{id, score})
	}
	slices.SortFunc(out, func(a, b Hit) int {
		if math.Abs(a.Score-b.Score) > 1e-10 {
			return cmp.Compare(b.Score, a.Score)
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return out
}

// compare checks that the index and the naive computation agree.
func (n *naive) compare(t testing.TB, x *Index, query string) {
	t.Helper()
	r, err := x.Search(context.Background(), query, SearchOptions{})
	if err != nil {
		t.Fatalf("Search(%q): %v", query, err)
	}
	want := n.search(query)
	got := slices.Collect(r.All())
	if len(got) != len(want) || r.Len() != len(want) {
		t.Fatalf("Search(%q) found %d, want %d\ngot %v\nwant %v", query, len(got), len(want), got, want)
	}
	for i := range want {
		// Scores that are as good as equal may stand in either order.
		if math.Abs(got[i].Score-want[i].Score) > 1e-9 {
			t.Fatalf("Search(%q) hit %d is %v, want %v", query, i, got[i], want[i])
		}
		if got[i].ID != want[i].ID && (i+1 == len(want) || want[i+1].Score < want[i].Score-1e-9) && (i == 0 || want[i-1].Score > want[i].Score+1e-9) {
			t.Fatalf("Search(%q) hit %d is %v, want %v", query, i, got[i], want[i])
		}
		if i > 0 && got[i].before(got[i-1]) {
			t.Fatalf("Search(%q) hits %d and %d are out of order: %v", query, i-1, i, got[i-1:i+1])
		}
	}
	ids := func(hits []Hit) (out []int64) {
		for _, h := range hits {
			out = append(out, h.ID)
		}
		slices.Sort(out)
		return out
	}
	if !slices.Equal(ids(got), ids(want)) {
		t.Fatalf("Search(%q) found %v, want %v", query, ids(got), ids(want))
	}
}

var corpusWords = strings.Fields(`run running runs runner ran temperature temperatures temper sensor sensors sensing
gateway gateways the a of and in connect connected connection connections café cafe naïve München Straße strasse
東京都 東京 京都 犬 猫犬 valve valves pump pumped pumping 42 3000 x1 x2 x3 x4 x5 failure failed fail fails`)

func randomText(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		i := int(float64(len(corpusWords)) * math.Pow(rng.Float64(), 1.7))
		b.WriteString(corpusWords[i])
		b.WriteString([]string{" ", " ", ", ", ". ", "-"}[rng.IntN(5)])
	}
	return b.String()
}

func randomQuery(rng *rand.Rand) string {
	var parts []string
	for range 1 + rng.IntN(4) {
		w := corpusWords[rng.IntN(len(corpusWords))]
		switch rng.IntN(6) {
		case 0:
			r := []rune(w)
			w = string(r[:1+rng.IntN(len(r))]) + "*"
		case 1:
			w = `"` + strings.TrimSpace(randomText(rng, 1+rng.IntN(3))) + `"`
		}
		parts = append(parts, w)
	}
	return strings.Join(parts, " ")
}

// TestRandomCorporaScoreAsTheFormulaSays changes, flushes, merges and reopens
// at random, and compares every answer with the naive computation.
func TestRandomCorporaScoreAsTheFormulaSays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		name := []string{"english", "german", "none"}[seed%3]
		t.Run(fmt.Sprintf("%s-%d", name, seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			dir := t.TempDir()
			x := mustOpen(t, dir, name)
			defer func() { x.Close() }()
			n := newNaive(t, name)
			seq := int64(0)
			for step := range 400 {
				id := int64(rng.IntN(120))
				seq++
				if rng.IntN(5) == 0 {
					if err := x.Delete(id, seq); err != nil {
						t.Fatal(err)
					}
					delete(n.docs, id)
				} else {
					fields := []Field{{"title", randomText(rng, rng.IntN(4))}, {"text", randomText(rng, rng.IntN(30))}}
					if err := x.Put(Document{ID: id, Seq: seq, Fields: fields}); err != nil {
						t.Fatal(err)
					}
					n.docs[id] = fields
				}
				if rng.IntN(6) == 0 {
					if err := x.Flush(); err != nil {
						t.Fatal(err)
					}
				}
				if step%97 == 96 {
					if err := x.Close(); err != nil {
						t.Fatal(err)
					}
					x = mustOpen(t, dir, name)
					if x.Lost() != nil || x.Watermark() != seq {
						t.Fatalf("opened at %d, want %d: %v", x.Watermark(), seq, x.Lost())
					}
				}
				if x.Len() != len(n.docs) {
					t.Fatalf("Len() = %d, want %d", x.Len(), len(n.docs))
				}
				n.compare(t, x, randomQuery(rng))
			}
		})
	}
}

func mustOpen(t testing.TB, dir, language string) *Index {
	t.Helper()
	x, err := Open(dir, Options{Language: language})
	if err != nil {
		t.Fatal(err)
	}
	return x
}
