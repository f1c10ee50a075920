package words_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

func TestWordsOfManyLanguages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Valve V-12, pressure: 3.5 bar":    "valve v 12 pressure 3 5 bar",
		"Ação é ÓTIMA":                     "acao e otima",
		"e\u0301tude":                      "etude",
		"Straße Ærø Łódź":                  "strasse aero lodz",
		"İstanbul ISPARTA":                 "istanbul isparta",
		"東京都の水":                            "東京 京都 都の の水",
		"水":                                "水",
		"pump東京":                           "pump 東京",
		"👍 ok":                             "ok",
		"":                                 "",
		"Ελλάς":                            "ελλασ",
		strings.Repeat("a", 100) + " next": strings.Repeat("a", 64) + " next",
	} {
		if diff := cmp.Diff(want, strings.Join(words.Of(text), " ")); diff != "" {
			t.Errorf("words of %q (-want +got):\n%s", text, diff)
		}
	}
}

func TestDistinctWordsAreSorted(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"a", "b", "c"}, words.Distinct("c B", "a b")); diff != "" {
		t.Error(diff)
	}
}
