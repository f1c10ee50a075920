package words_test

import (
	"slices"
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
		"👍🏽 ok 🇧🇷":                         "👍 ok 🇧🇷",
		"ガス ｶﾞｽ パン カス":                     "ガス ガス パン カス",
		"か\u3099く":                         "がく",
		"Kühl\u00adwasser":                 "kuhlwasser",
		"서울 물":                             "서울 물",
		"":                                 "",
		"हिन्दी पंप":                       "हिन्दी पंप",
		"Ελλάς":                            "ελλασ",
		strings.Repeat("a", 100) + " next": strings.Repeat("a", 64) + " next",
	} {
		if diff := cmp.Diff(want, strings.Join(words.Of(text), " ")); diff != "" {
			t.Errorf("words of %q (-want +got):\n%s", text, diff)
		}
	}
}

// forms are words, by language, that find each other.
var forms = map[string]string{
	"English":    "pump pumps, city cities, measure measured, measuring measures, added adds, supply supplies, café cafes",
	"Portuguese": "bomba bombas, pressão pressões, pressao pressões, avariada avariadas, avariado avariada, informação informacoes, animal animais, fácil fáceis, mão mãos, trabalha trabalhar, mulher mulheres, sensor sensores, homem homens, papel papéis",
	"German":     "Haus Häuser, Haus Hauses, Haus Haeuser, Pumpe Pumpen, Straße Strassen, Müller Mueller, neue neuer, Leitung Leitungen, Buch Bücher, Größe GROESSE, Ärger Aerger",
	"others":     "İstanbul istanbul, IŞIK ışık, 水 水, 東京 東京都の水, 水 東京都の水, 🎉 🎉",
}

func TestFormsOfAWordMatch(t *testing.T) {
	t.Parallel()
	for language, pairs := range forms {
		for pair := range strings.SplitSeq(pairs, ", ") {
			both := strings.Fields(pair)
			for i := range 2 {
				if language == "others" && i == 1 {
					continue // a part finds the whole
				}
				text, query := both[1-i], words.NewQuery(both[i])
				keys := new(words.Index).Keys(text)
				if !slices.ContainsFunc(query.Keys(), func(key string) bool { return slices.Contains(keys, key) }) {
					t.Errorf("%s: the index of %q has %q, none of %q", language, text, keys, query.Keys())
				}
				if !slices.ContainsFunc(words.All(text), func(word string) bool { at, weight := query.Match(word); return at >= 0 && weight > 0 }) {
					t.Errorf("%s: %q does not match %q", language, text, both[i])
				}
			}
		}
	}
}

func TestOtherWordsDoNotMatch(t *testing.T) {
	t.Parallel()
	for pair := range strings.SplitSeq("mão maçã, carro cara, Haus Hase, Masse Messe, power pump, ガス カス, 東京 京都, 🎉 🎈, v12 v13, water wave", ", ") {
		both := strings.Fields(pair)
		for i := range 2 {
			if at, _ := words.NewQuery(both[1-i]).Match(words.Of(both[i])[0]); at >= 0 {
				t.Errorf("%q matches %q", both[1-i], both[i])
			}
		}
	}
}

func TestFunctionWordsAreLeftOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Wo ist das Haus?":                     "haus",
		"Onde não fica a bomba e com quem?":    "bomba fica",
		"Who looks after the pump in the hall": "hall looks pump",
		"the red hat of Ana":                   "ana hat red",
		"Pompa nerede?":                        "pompa",
		"die Pumpe":                            "pumpe",
		"A":                                    "a",
		"die der das":                          "das der die",
		"東京":                                   "東京",
	} {
		if diff := cmp.Diff(want, strings.Join(words.NewQuery(text).Words, " ")); diff != "" {
			t.Errorf("words of %q (-want +got):\n%s", text, diff)
		}
	}
}
