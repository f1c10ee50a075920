package snowball_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/words/snowball"
)

// stems has lines with a language, a word and its stem by the Python package.
//
//go:embed testdata/stems.txt
var stems string

func TestStemsAreThoseOfThePythonPackage(t *testing.T) {
	t.Parallel()
	n, wrong := 0, 0
	for line := range strings.Lines(stems) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		language, word, want := fields[0], fields[1], fields[2]
		n++
		if got := snowball.Stemmer(language)(word); got != want {
			if wrong++; wrong <= 20 {
				t.Errorf("%s: the stem of %q is %q, want %q", language, word, got, want)
			}
		}
	}
	if n < 19*200 || wrong > 0 {
		t.Errorf("%d of %d stems are wrong", wrong, n)
	}
}

func TestStemmerOfAnUnknownLanguage(t *testing.T) {
	t.Parallel()
	if snowball.Stemmer("klingon") != nil {
		t.Error("a stemmer exists for an unknown language")
	}
}

func BenchmarkStem(b *testing.B) {
	stem := snowball.Stemmer("english")
	for b.Loop() {
		stem("generalizations")
	}
}
