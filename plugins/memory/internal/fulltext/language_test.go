package fulltext

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// wordPairs are words, by language, that find each other: forms of one word,
// and one word with and without its accents.
var wordPairs = map[string]string{
	"danish":    "måling målinger, maling måling",
	"dutch":     "coördinatie coordinatie, huis huizen, pomp pompen",
	"english":   "café cafes, naïve naive, résumé resumes, sensor sensors",
	"finnish":   "talo talossa, päivä päivät, paiva päivä",
	"french":    "général généraux, cheval chevaux, élève élèves, fenêtre fenêtres, qualité qualites, répéter répété, création créations, arrivé arrivées, élevé eleve, système systemes, mesurée mesurés, sœur soeurs",
	"german":    "Straße Strassen, Müller Mueller, Ärger Aerger, Haus Häuser, Häuser Haeuser, Übung Uebungen, neue neuer, Größe GROESSE, Quelle Quellen, Bauer Bauern",
	"hungarian": "ház házak, könyv konyvek, érzékelő érzékelők",
	"italian":   "città citta, università universita, possibilità possibilita, sensore sensori",
	"norwegian": "måling målinger, maling måling",
	"portuguese": `informação informações, informacao informações, INFORMAÇÃO informacoes, ação ações, coração corações, limão limões, animal animais,
		papel papéis, fácil fáceis, português portugueses, inglês ingleses, avó avós, café cafés, reunião reuniões, opinião opiniões, pão pães, mão mãos,
		cão cães, possível possíveis, amável amáveis, história historias, máquina máquinas, sensor sensores, medição medicoes, avião aviões, órgão órgãos,
		irmã irmãs, lição licoes, frequência frequencias, móvel móveis`,
	"romanian": "soluție soluții, solutie soluții, informaţie informații, oraș orașe, știință științe, staţie statie",
	"russian":  "ёлка елки, станция станции",
	"spanish":  "canción canciones, información informaciones, cancion canciones, inglés ingleses, árbol arboles, niño niños, niño nino, jardín jardines, lápiz lápices, biología biologia, tecnologías tecnologia",
	"swedish":  "flicka flickor, nät näten, räkning räkningar, rakning räkningar",
	"turkish":  "ışık ışıklar, IŞIK ışık, İstanbul istanbul, isik ışık, KAPI kapılar, ISPARTA ısparta",
	"none":     "🎉 🎉, 👍 👍🏽, ❤ ❤️, 🇧🇷 🇧🇷, 👨‍👩‍👧 👨‍👩‍👧, ｶﾞｽ ガス, ﬁn fin, x² x2, Ⓐ a",
}

// TestFormsOfAWordFindEachOther searches for each word of a pair in a document
// that has the other one, both also as a keyboard or a file system may write them.
func TestFormsOfAWordFindEachOther(t *testing.T) {
	t.Parallel()
	for name, pairs := range wordPairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := mustOpen(t, t.TempDir(), name)
			defer x.Close()
			for pair := range strings.SplitSeq(pairs, ",") {
				words := strings.Fields(pair)
				for i, text := range words {
					query := words[1-i]
					put(t, x, "before "+norm.NFC.String(text)+", after", "another "+norm.NFD.String(text))
					for _, q := range []string{query, norm.NFD.String(query), `"` + query + `"`, query + "*"} {
						if strings.HasSuffix(q, "*") && q != text+"*" {
							continue // of a prefix, the text must begin with it
						}
						if got := found(t, x, q); len(got) != 2 {
							t.Errorf("%q finds %v of two documents with %q", q, got, text)
						}
					}
				}
			}
		})
	}
}

// TestOtherWordsDoNotFindEachOther keeps stems and folding from going too far.
func TestOtherWordsDoNotFindEachOther(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string]string{
		"portuguese": "mão maçã, carro cara, sensor sentido, leis lei2",
		"german":     "Haus Hase, Quelle Qualle, Masse Messe",
		"french":     "pêche poche, côte carte",
		"turkish":    "kapı kuş, ılık ilke",
		"none":       "🎉 🎈, 🇧🇷 🇧🇪, й и, 東京 京都",
	} {
		x := mustOpen(t, t.TempDir(), name)
		for pair := range strings.SplitSeq(pairs, ",") {
			words := strings.Fields(pair)
			for i, text := range words {
				put(t, x, text)
				if got := found(t, x, words[1-i]); got != nil {
					t.Errorf("%s: %q finds %q", name, words[1-i], text)
				}
			}
		}
		x.Close()
	}
}

// TestAnAccentedWordIsNotAStopWord that is one without its accent only.
func TestAnAccentedWordIsNotAStopWord(t *testing.T) {
	t.Parallel()
	x := mustOpen(t, t.TempDir(), "spanish")
	defer x.Close()
	put(t, x, "el té de la tarde")
	for query, want := range map[string]int{"té": 1, "te": 0, "la": 0, "él": 0} {
		if got := found(t, x, query); len(got) != want {
			t.Errorf("%q finds %v, want %d", query, got, want)
		}
	}
}
