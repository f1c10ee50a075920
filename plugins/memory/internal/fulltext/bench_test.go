package fulltext

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// zipfText makes documents of about 1 KB whose words are as unevenly spread as
// a natural language has: word 0 is the most frequent of 100,000.
type zipfText struct {
	zipf *rand.Zipf
	b    strings.Builder
}

var zipfWords = sync.OnceValue(func() (out []string) {
	for n := range uint64(100_000) {
		out = append(out, zipfWord(n))
	}
	return out
})

func newZipfText(seed uint64) *zipfText {
	rng := rand.New(rand.NewPCG(seed, 2))
	return &zipfText{zipf: rand.NewZipf(rng, 1.1, 4, 99_999)}
}

// zipfWord spells word number n: five to eight letters, as a rule.
func zipfWord(n uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	h := (n + 1) * 0x9E3779B97F4A7C15
	var w []byte
	for range 2 + h>>62 {
		w = append(w, consonants[h%14], vowels[h/14%5])
		h /= 70
	}
	return fmt.Sprintf("%s%c%c", w, 'a'+n%26, 'a'+n/26%26)
}

func (z *zipfText) next() string {
	z.b.Reset()
	for z.b.Len() < 1000 {
		z.b.WriteString(zipfWords()[z.zipf.Uint64()])
		z.b.WriteByte(' ')
	}
	return z.b.String()
}

func benchDir(b *testing.B, docs int) string {
	b.Helper()
	build := func() (string, error) {
		dir := fmt.Sprintf("%s/tea-fulltext-bench-%d", b.TempDir(), docs)
		x := mustOpen(b, dir, "english")
		text := newZipfText(1)
		for i := range docs {
			if err := x.Put(Document{ID: int64(i), Seq: int64(i + 1), Fields: []Field{{"text", text.next()}}}); err != nil {
				return "", err
			}
		}
		waitMerged(b, x)
		return dir, x.Close()
	}
	dir, err := build()
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// waitMerged flushes, and waits until nothing is left to merge.
func waitMerged(tb testing.TB, x *Index) {
	tb.Helper()
	if err := x.Flush(); err != nil {
		tb.Fatal(err)
	}
	x.quiet()
}

var benchSizes = []int{1_000, 10_000, 100_000}

// BenchmarkIndex builds an index of each size once, and measures the operations that
// a user waits for.
func BenchmarkIndex(b *testing.B) {
	for _, docs := range benchSizes {
		if docs > 10_000 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprintf("docs=%d", docs), func(b *testing.B) {
			dir := benchDir(b, docs)
			x := mustOpen(b, dir, "english")
			defer x.Close()
			stats := x.Stats()
			b.Logf("%d segments, %d KB", stats.Segments, stats.DiskBytes>>10)
			for _, query := range []struct{ name, text string }{
				{"rare", numbered(30_000, 45_000)},
				{"mixed2", numbered(15, 3000)},
				{"mixed4", numbered(5, 80, 900, 20_000)},
				{"frequent4", numbered(0, 1, 2, 3)},
				{"phrase", `"` + numbered(3, 7) + `"`},
				{"prefix", zipfWord(77)[:3] + "*"},
				{"letter", "b*"},
				{"hostile-words", hostile(10_000)},
				{"hostile-prefixes", "b* d* f* g* k* l* m* n* p* r* s* t* v* z* a* e*"},
			} {
				b.Run("search="+query.name, func(b *testing.B) { benchSearch(b, x, query.text, 32) })
				b.Run("all="+query.name, func(b *testing.B) { benchSearch(b, x, query.text, 0) })
			}
			b.Run("put", func(b *testing.B) { benchPut(b, x, "a", "a") })
			b.Run("put=accents", func(b *testing.B) { benchPut(b, x, "a", "á") })
			b.Run("open", func(b *testing.B) { benchOpen(b, dir) })
		})
	}
}

func numbered(numbers ...uint64) string {
	var out []string
	for _, n := range numbers {
		out = append(out, zipfWord(n))
	}
	return strings.Join(out, " ")
}

// hostile names the most frequent words.
func hostile(n uint64) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(zipfWord(i) + " ")
	}
	return b.String()
}

func benchSearch(b *testing.B, x *Index, query string, limit int) {
	b.ReportAllocs()
	var took []time.Duration
	found := 0
	for b.Loop() {
		start := time.Now()
		r, err := x.Search(context.Background(), query, SearchOptions{Limit: limit})
		if err != nil {
			b.Fatal(err)
		}
		found = r.Len()
		r.Top(20)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "us-median")
	b.ReportMetric(float64(found), "hits")
}

func benchPut(b *testing.B, x *Index, from, to string) {
	b.ReportAllocs()
	text := newZipfText(9)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = strings.ReplaceAll(text.next(), from, to)
	}
	seq := x.Stats().Seq
	id := int64(0)
	for b.Loop() {
		seq++
		id++
		if err := x.Put(Document{ID: id * 7919 % int64(x.Len()+1), Seq: seq, Fields: []Field{{"text", texts[id%1000]}}}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchOpen(b *testing.B, dir string) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	y := mustOpen(b, dir, "english")
	runtime.GC()
	runtime.ReadMemStats(&after)
	docs := y.Len()
	y.Close()
	for b.Loop() {
		y := mustOpen(b, dir, "english")
		if y.Len() != docs {
			b.Fatal("the index is not whole")
		}
		y.Close()
	}
	b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/float64(docs), "heap-B/doc")
}

// BenchmarkBuild makes a whole index, merges included.
func BenchmarkBuild(b *testing.B) {
	for _, docs := range benchSizes {
		b.Run(fmt.Sprintf("docs=%d", docs), func(b *testing.B) {
			if docs > 10_000 && testing.Short() {
				b.Skip()
			}
			for b.Loop() {
				benchDir(b, docs)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(docs), "us/doc")
		})
	}
}
