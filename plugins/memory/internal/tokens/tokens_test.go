package tokens_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"hello world", 2},
		{"antidisestablishmentarianism", 6},
		{"2 + 2 = 4", 7},
		{"お誕生日おめでとう", 9},
		{"<|endoftext|>", 7}, // text, not the end of anything
		{"🙂", 2},
		// As js-tiktoken 1.0 counts them.
		{"\n   \n", 1},
		{"\n   \n ", 2},
		{"I'LLÜberdruck\n \n \n  x עברית é\r\n   ไทย   \nÜberdruck é   12345   ½ \n \n  x", 40},
		{"(x)    \n \n\n pump \n \n  x   İ # Überdruck\t \n   \n\u00a0漢字    \n🙂ſ 3.14 é🙂... 漢字   \u2028 עברית हिन्दी \n   \nעברית 'ſ\n   \n a हिन्दी Überdruck ไทย", 77},
	} {
		if got := tokens.Count(c.text); got != c.want {
			t.Errorf("%q has %d tokens, want %d", c.text, got, c.want)
		}
	}
}

// TestCountOfPartsIsCountOfWhole holds the count in segments against the
// tokenizer's own count of the whole.
func TestCountOfPartsIsCountOfWhole(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	whole := tokens.Base()
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"pump", "Überdruck", "don't", "I'LL", "12345", "3.14", "→", "\n", "\n\n", "\r\n", "  ", "\t", "```go", "#", "##", "漢字", "🙂", "a", ".", "...", "(x)", "'s"}
	for range 60 {
		var b strings.Builder
		for b.Len() < 20_000 {
			b.WriteString(words[random.IntN(len(words))])
			if random.IntN(3) > 0 {
				b.WriteByte(' ')
			}
		}
		text := b.String()
		want, err := whole.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := tokens.Count(text); got != want {
			t.Fatalf("%d tokens, want %d, in %q", got, want, text)
		}
	}
}

func TestCutAtASensiblePlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"all of it", "one two three", 3, "one two three"},
		{"nothing", "one two three", 0, ""},
		{"negative", "one two three", -1, ""},
		{"a word", "one two three four five", 3, "one two three"},
		{"a sentence", "The pump is hot. The valve is shut. Nobody knows why it is", 12, "The pump is hot. The valve is shut."},
		{"a line", "- the first thing\n- the second thing\n- the third and last thing", 11, "- the first thing\n- the second thing"},
		{"a paragraph", "First paragraph. It has two sentences.\n\nSecond paragraph. It is short. And goes on", 16, "First paragraph. It has two sentences."},
		{"a version is not a sentence", "Version 1.26.8 of the program runs here", 7, "Version 1.26.8"},
		{"before the code", "Some words come before the code, and they are many.\n```go\nfmt.Println(1)\nfmt.Println(2)\n```\nend", 20, "Some words come before the code, and they are many."},
		{"in the code, at a line", "```go\nfmt.Println(1)\nfmt.Println(2)\nfmt.Println(3)\n```", 14, "```go\nfmt.Println(1)\nfmt.Println(2)"},
		{"no character in two", "🙂🙂🙂", 3, "🙂"},
		{"not even one character", "🙂", 1, ""},
		{"one word", strings.Repeat("x", 100), 2, strings.Repeat("x", 16)},
		{"Chinese", "今天天气很好。明天会下雨。后天", 16, "今天天气很好。明天会下雨。"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			head, count := tokens.Cut(c.text, c.limit)
			if head != c.want {
				t.Errorf("got %q, want %q", head, c.want)
			}
			if count != tokens.Count(head) {
				t.Errorf("says %d tokens, but they are %d", count, tokens.Count(head))
			}
		})
	}
}

// hostile are texts on which tokenizers become slow or lose count.
func hostile(size int) map[string]string {
	random := rand.New(rand.NewPCG(3, 4))
	letters, binary := make([]byte, size), make([]byte, size)
	for i := range letters {
		letters[i], binary[i] = byte('a'+random.IntN(26)), byte(random.IntN(256))
	}
	return map[string]string{
		"one letter": strings.Repeat("a", size), "letters": string(letters), "binary": string(binary),
		"spaces": strings.Repeat(" ", size), "lines": strings.Repeat("\n", size), "blank lines": strings.Repeat("\n ", size/2),
		"tabs": strings.Repeat(" \t", size/2) + "x", "dots": strings.Repeat(".", size), "digits": strings.Repeat("7", size),
		"apostrophes": strings.Repeat("'", size), "CJK": strings.Repeat("漢字", size/6), "marks": "e" + strings.Repeat("\u0301", size/2),
		"fences": strings.Repeat("```\n", size/4), "continuation": strings.Repeat("\x80", size),
	}
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for name, text := range hostile(64 << 10) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := tokens.Count(text)
			if all <= 0 || all > len(text) {
				t.Errorf("%d tokens in %d bytes", all, len(text))
			}
			for _, limit := range []int{1, 7, 500, all - 1} {
				head, count := tokens.Cut(text, limit)
				switch {
				case count > limit || tokens.Count(head) != count:
					t.Errorf("limit %d: says %d, counted %d", limit, count, tokens.Count(head))
				case !strings.HasPrefix(text, head):
					t.Errorf("limit %d: %q is not a beginning", limit, head)
				case utf8.ValidString(text) && !utf8.ValidString(head):
					t.Errorf("limit %d: a character was cut", limit)
				}
			}
		})
	}
}

func FuzzCut(f *testing.F) {
	f.Add("One. Two.\n\n```\ncode\n```\nthree 漢字 🙂", 5)
	f.Add("\n \n \n\t'S 12345", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(limit, 1000)
		head, count := tokens.Cut(text, limit)
		if count > max(limit, 0) || count != tokens.Count(head) || !strings.HasPrefix(text, head) {
			t.Errorf("limit %d: %q has %d tokens", limit, head, count)
		}
	})
}

func BenchmarkCount(b *testing.B) {
	texts := hostile(1 << 20)
	texts["prose"] = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 1<<20/45)
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tokens.Count(text)
			}
		})
	}
}
