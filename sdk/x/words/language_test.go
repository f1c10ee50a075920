package words

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStemsAreThoseOfTheFormat fails when the stemmers or tables change. Then StemsVersion
// or analysisVersion must change too, so that old indexes are rewritten.
func TestStemsAreThoseOfTheFormat(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, language := range Languages() {
		l, err := New(language)
		if n := len(l.stop); err != nil || language != "none" && language != "simple" && (n < 30 || n > 160) {
			t.Fatalf("%s has %d stop words: %v", language, n, err)
		}
		var stems []string
		for _, w := range []string{"running", "generalizations", "nationale", "kinderen", "хозяйственный", "الكتاب", "evlerimizden", "x86", "犬小"} {
			stems = append(stems, l.Keys(l.Form(l.Normalize(w)))[0])
		}
		got[language] = strings.Join(stems, " ")
	}
	want := stemsOfTheFormat
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stems have changed (-want +got):\n%s", diff)
	}
}

// stemsOfTheFormat is what the stemmers make of a few words, by language.
var stemsOfTheFormat = map[string]string{
	"arabic":     "running generalizations nationale kinderen хозяйственный كتاب evlerimizden x86 犬小",
	"danish":     "running generalization national kind хозяйственный الكتاب evlerimizd x86 犬小",
	"dutch":      "run neralization nationaal kinder хозяйственный الكتاب evlerimis x86 犬小",
	"english":    "run general national kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"finnish":    "running generalizations national kinder хозяйственный الكتاب evlerimizd x86 犬小",
	"french":     "running generaliz national kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"german":     "running generalization national kind хозяйственный الكتاب evlerimizd x86 犬小",
	"hungarian":  "running generalizations national kinder хозяйственный الكتاب evlerimiz x86 犬小",
	"irish":      "running generalizations nationale kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"italian":    "running generalizations national kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"none":       "running generalizations nationale kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"norwegian":  "running generalization national kinder хозяйственный الكتاب evlerimizd x86 犬小",
	"porter":     "run gener national kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"portuguese": "running generalizatiom national kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"romanian":   "running generalizations national kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"russian":    "running generalizations nationale kinderen хозяйствен الكتاب evlerimizden x86 犬小",
	"simple":     "running generalizations nationale kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"spanish":    "running generalizations national kinder хозяйственный الكتاب evlerimizd x86 犬小",
	"swedish":    "running generalization national kinder хозяйственный الكتاب evlerimizd x86 犬小",
	"tamil":      "running generalizations nationale kinderen хозяйственный الكتاب evlerimizden x86 犬小",
	"turkish":    "runningi generalizations national kindere хозяйственный الكتاب ev x86 犬小",
}
