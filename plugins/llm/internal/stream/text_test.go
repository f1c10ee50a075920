package stream

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// throughJSON sends pieces the way a server does, cut where they are, and
// returns the output of a joiner.
func throughJSON(t testing.TB, pieces ...string) (out []string, rest string) {
	t.Helper()
	var j Joiner
	for _, piece := range pieces {
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(piece) + `"`
		var text string
		if err := json.Unmarshal(Escape([]byte(quoted)), &text); err != nil {
			t.Fatalf("%q: %v", quoted, err)
		}
		out = append(out, j.Add(text))
	}
	return out, j.Rest()
}

func TestJoiner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		pieces []string
		want   []string
		rest   string
	}{
		{"plain", []string{"a", "é", "☀"}, []string{"a", "é", "☀"}, ""},
		{"halves of two bytes", []string{"a\xc3", "\xa9b"}, []string{"a", "éb"}, ""},
		{"one byte at a time", []string{"\xf0", "\x9f", "\x98", "\x80!"}, []string{"", "", "", "😀!"}, ""},
		{"never completed", []string{"a\xf0\x9f"}, []string{"a"}, "\ufffd"},
		{"completed by something else", []string{"\xe2\x82", "x"}, []string{"", "\ufffdx"}, ""},
		{"half a pair in the bytes of UTF-8", []string{"a\xed\xa0", "\xbd\xed\xb8\x80b"}, []string{"a", "😀b"}, ""},
		{"no part of a character", []string{"a\xff", "b"}, []string{"a\ufffd", "b"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, rest := throughJSON(t, c.pieces...)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if rest != c.rest {
				t.Errorf("rest %q, want %q", rest, c.rest)
			}
		})
	}
}

// Servers that write ASCII only cut a character between the halves of its
// surrogate pair.
func TestPairsOfSurrogatesAreJoined(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		pieces []string // the inside of JSON strings
		want   string
	}{
		{"in one piece", []string{`a\ud83d\ude00b`}, "a😀b"},
		{"in two pieces", []string{`a\ud83d`, `\ude00b`}, "a😀b"},
		{"in capitals", []string{`\uD83D`, `\uDE00`}, "😀"},
		{"an empty piece between", []string{`\ud83d`, ``, `\ude00`}, "😀"},
		{"two pairs", []string{`\ud83d`, `\ude00\ud83d`, `\ude01`}, "😀😁"},
		{"only the first half", []string{`a\ud83d`, `b`}, "a\ufffdb"},
		{"only the second half", []string{`a\ude00b`}, "a\ufffdb"},
		{"the first half at the end", []string{`a\ud83d`}, "a\ufffd"},
		{"two first halves", []string{`\ud83d`, `\ud83d\ude00`}, "\ufffd😀"},
		{"a backslash before u", []string{`\\ud83d`, `\\ude00`}, `\ud83d\ude00`},
		{"other escapes", []string{`\n\u00e9\"`}, "\né\""},
		{"a character of two bytes after half a pair", []string{`\ud83d`, "\u00e9"}, "\ufffdé"},
		{"the last character before the surrogates", []string{`\ud83d`, "\ud7ff!"}, "\ufffd\ud7ff!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var j Joiner
			var got strings.Builder
			for _, piece := range c.pieces {
				var text string
				if err := json.Unmarshal(Escape([]byte(`"`+piece+`"`)), &text); err != nil {
					t.Fatal(err)
				}
				got.WriteString(j.Add(text))
			}
			got.WriteString(j.Rest())
			if diff := cmp.Diff(c.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzJoiner(f *testing.F) {
	f.Add("aé☀😀", 2)
	f.Add("\xff\xe2\x82", 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		if at < 0 || at > len(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= rawByte }) {
			t.Skip()
		}
		out, rest := throughJSON(t, text[:at], text[at:])
		whole := strings.Join(out, "") + rest
		if !utf8.ValidString(whole) {
			t.Errorf("%q is not UTF-8", whole)
		}
		if utf8.ValidString(text) && whole != text {
			t.Errorf("got %q, want %q", whole, text)
		}
	})
}
