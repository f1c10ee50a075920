package chunk

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
)

// byWords counts words, which makes sizes easy to read.
func byWords(text string) int { return len(strings.Fields(text)) }

func texts(chunks []Chunk) (out []string) {
	for _, c := range chunks {
		out = append(out, c.Text)
	}
	return out
}

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text    string
		by            By
		size, overlap int
		want          []string
	}{
		{"nothing", " \n", Sentences, 5, 0, nil},
		{"words", "a b c d e", Tokens, 2, 0, []string{"a b", "c d", "e"}},
		{"words that overlap", "a b c d e", Tokens, 3, 1, []string{"a b c", "c d e"}},
		{"sentences stay whole", "One two. Three four! Five?", Sentences, 4, 0, []string{"One two. Three four!", "Five?"}},
		{"sentences that overlap", "One two. Three four. Five six.", Sentences, 4, 2, []string{"One two. Three four.", "Three four. Five six."}},
		{"a long sentence", "One two three four five. Six.", Sentences, 3, 0, []string{"One two three", "four five. Six."}},
		{"no spaces", "今日は晴れです。明日は雨です。", Sentences, 1, 0, []string{"今日は晴れです。", "明日は雨です。"}},
		{"headings", "intro\n# A\nx y\n## B\nz\n# C\nw", Headings, 9, 0, []string{"intro", "# A\nx y", "## B\nz", "# C\nw"}},
		{"a long section", "# A\nOne two. Three four.", Headings, 4, 0, []string{"# A\nOne two.", "Three four."}},
		{"no headings in code", "# A\n```\n# no\n```\n#hash", Headings, 99, 0, []string{"# A\n```\n# no\n```\n#hash"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := Split(test.text, Options{By: test.by, Size: test.size, Overlap: test.overlap, Count: byWords})
			if diff := cmp.Diff(test.want, texts(got)); diff != "" {
				t.Error(diff)
			}
			for _, c := range got {
				if test.text[c.Start:c.End] != c.Text {
					t.Errorf("%q is not at %d:%d", c.Text, c.Start, c.End)
				}
			}
		})
	}
}

func TestHeadingsOfAChunk(t *testing.T) {
	t.Parallel()
	var got [][]string
	for _, c := range Split("# A #\n## B\nx\n### C\ny\n## D\nz", Options{By: Headings, Size: 50, Count: byWords}) {
		got = append(got, c.Headings)
	}
	want := [][]string{{"A"}, {"A", "B"}, {"A", "B", "C"}, {"A", "D"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// No text is lost, none is cut inside a character, and the end is reached.
func FuzzSplit(f *testing.F) {
	f.Add("One. Two three.\n# A\n```\n", 3, 1)
	f.Add("今日は\xff\xfe晴れ", 1, 0)
	f.Fuzz(func(t *testing.T, text string, size, overlap int) {
		size = 1 + abs(size)%50
		overlap = abs(overlap) % size
		for _, by := range []By{Tokens, Sentences, Headings} {
			covered := 0
			for _, c := range Split(text, Options{By: by, Size: size, Overlap: overlap, Count: byWords}) {
				if text[c.Start:c.End] != c.Text {
					t.Fatalf("%s: %q is not at %d:%d", by, c.Text, c.Start, c.End)
				}
				if c.Start > covered && strings.TrimFunc(text[covered:c.Start], unicode.IsSpace) != "" {
					t.Fatalf("%s: %q is in no chunk", by, text[covered:c.Start])
				}
				if utf8.ValidString(text) && !utf8.ValidString(c.Text) {
					t.Fatalf("%s: %q is cut inside a character", by, c.Text)
				}
				covered = max(covered, c.End)
			}
			if strings.TrimFunc(text[covered:], unicode.IsSpace) != "" {
				t.Fatalf("%s: the end %q is in no chunk", by, text[covered:])
			}
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// Text without spaces was cut at a number of bytes: its chunks exceeded the
// size, and an emoji of several code points was cut in two.
func TestTextWithoutSpaces(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"emoji":    strings.Repeat("👩‍🔧🔥", 300),
		"thai":     strings.Repeat("ที่", 300),
		"japanese": strings.Repeat("今日は晴れ", 100),
		"a hash":   strings.Repeat("0123456789abcdef", 50),
	} {
		for _, by := range []By{Tokens, Sentences} {
			var all strings.Builder
			for _, c := range Split(text, Options{By: by, Size: 16, Count: tokens.Count}) {
				all.WriteString(c.Text)
				if c.Tokens > 16 {
					t.Errorf("%s: a chunk has %d tokens: %q", name, c.Tokens, c.Text)
				}
				if strings.HasSuffix(c.Text, "👩") || strings.HasPrefix(c.Text, "\u200d") {
					t.Errorf("%s: a character is cut: %q", name, c.Text)
				}
			}
			if all.String() != text {
				t.Errorf("%s: the chunks are not the text", name)
			}
		}
	}
}
