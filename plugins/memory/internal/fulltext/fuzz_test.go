package fulltext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

func FuzzAnalyzer(f *testing.F) {
	for _, s := range append(corpusWords, "İstanbul ΟΔΟΣ \u0e01\u0e33 가각 ﷺ e\u0301\u0301 a\u00adb ½ \xff\xfe", strings.Repeat("é", 99)) {
		f.Add(s)
	}
	var all []*words.Language
	for _, name := range words.Languages() {
		l, err := words.New(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, l)
	}
	f.Fuzz(func(t *testing.T, text string) {
		forms := func(text string) (out []string) {
			var c words.Cutter
			next := 0
			end := c.Cut(text, 0, func(form []byte, w words.Word) bool {
				if len(form) == 0 || len(form) > words.MaxBytes || !utf8.Valid(form) || w.Pos != next || w.End > len(text) {
					t.Fatalf("form %q %+v", form, w)
				}
				next++
				out = append(out, string(form))
				return true
			})
			if end != next {
				t.Fatalf("%d words end at %d", next, end)
			}
			return out
		}
		for _, form := range forms(all[0].Normalize(text)) {
			if strings.ContainsAny(form, "\x00\x01 *\"") {
				t.Fatalf("form %q", form)
			}
			for _, l := range all {
				key := l.Form(form)
				if k := l.Keys(key); k[0] == "" || len(k[0]) > 2*words.MaxBytes || k != l.Keys(key) || len(k[0])+len(key) >= maxKeyBytes {
					t.Fatalf("%s: the keys of %q are %q", l.Name, key, k)
				}
			}
		}
		if len(text) > 200 {
			return
		}
		// Whatever the words, a document is found by its own text.
		x, err := open("fuzz", newMemDisk(), Options{Language: "none"})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		put(t, x, strings.ReplaceAll(text, "|", " "))
		if x.Stats().Words > 0 && len(found(t, x, strings.ReplaceAll(text, "|", " "))) != 1 {
			t.Fatalf("%q does not find itself", text)
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{`a "b c" d*`, `"the x1 x2" r* 犬 東京*`, `""" * "* *"`, "“x1„ «x2»", strings.Repeat("x1 ", 100)} {
		f.Add(s)
	}
	h := newHistory(f, newMemDisk())
	for range 3 {
		h.change(20)
		waitMerged(f, h.x)
	}
	h.change(5)
	f.Fuzz(func(t *testing.T, text string) {
		q := parseQuery(text, h.x.lang)
		if len(q.terms) > maxTerms || len(q.phrases) > maxPhrases {
			t.Fatalf("%d terms, %d phrases", len(q.terms), len(q.phrases))
		}
		h.n.compare(t, h.x, text)
	})
}

// FuzzLists decodes lists and dictionary entries whose checksums match.
func FuzzLists(f *testing.F) {
	h := newHistory(f, newMemDisk())
	h.change(30)
	directory := appendBlock(nil, blockDocs, 40, []uint64{impactOf(9, 1), impactOf(7, 2)})
	directory = appendBlock(directory, 3, 50-2*crcBytes, []uint64{impactOf(3, 1)})
	for _, t := range h.x.mem.terms {
		f.Add(t.docs, t.pos, directory)
	}
	f.Fuzz(func(t *testing.T, docs, positions, directory []byte) {
		// Damaged data is a failure, never another panic.
		decode := func(fn func()) (err error) {
			defer catch(&err)
			fn()
			return nil
		}
		_ = decode(func() {
			postings := decodePostings(nil, docs, 0, 100)
			for i, p := range postings {
				if p.ord >= 100 || i > 0 && postings[i-1].ord >= p.ord {
					t.Fatalf("postings %v", postings)
				}
				var own []byte
				own, positions = takePositions(positions, p.tf)
				decodePositions(nil, own)
			}
		})
		_ = decode(func() {
			for key := []byte(nil); len(docs) > 0; {
				key, _, docs = readEntry(key, docs, formatBlocks)
			}
		})
		_ = decode(func() {
			c := cursor{list: list{docsLen: 90 - crcBytes}, part: &part{ids: make([]int64, 200)}, directory: directory, blocks: make([]docBlock, 2)}
			if c.readDirectory(); c.blocks[1].last >= 200 || c.blocks[0].last >= c.blocks[1].last {
				t.Fatalf("blocks %v", c.blocks)
			}
			s := scorer{slope: 1}
			s.blockBound(&clause{weight: 1}, &c, 1)
		})
	})
}

func FuzzManifest(f *testing.F) {
	d := newMemDisk()
	h := newHistory(f, d)
	for range 3 {
		h.change(30)
		waitMerged(f, h.x)
	}
	f.Add(d.files[manifestName].data)
	f.Add([]byte("tea-fulltext 3 00000000\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		damaged := d.clone()
		damaged.files[manifestName] = &memFile{data: data}
		x, err := open("fuzz", damaged, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if x.Lost() != nil && (x.Len() != 0 || x.Watermark() != 0) {
			t.Fatalf("lost, but %d documents at %d", x.Len(), x.Watermark())
		}
	})
}
