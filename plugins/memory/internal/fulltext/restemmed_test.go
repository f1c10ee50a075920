package fulltext

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// olderStems are stems of Snowball 2 that differ from the current ones.
var olderStems = map[string]string{"added": "ad", "evening": "even", "lateral": "later"}

// outdatedIndex writes an index with the stems of Snowball 2.
func outdatedIndex(t *testing.T, texts ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	x := mustOpen(t, dir, "english")
	stem := x.lang.Stem
	x.lang.Stem = func(word string) string {
		if older, ok := olderStems[word]; ok {
			return older
		}
		return stem(word)
	}
	put(t, x, texts...)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, manifestName)
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(manifest, []byte("\n"))
	body = bytes.Replace(body, []byte(`"stems":"3.1.1",`), nil, 1)
	if err := os.WriteFile(path, append([]byte(manifestHead(4, body)), body...), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAnOutdatedIndexAnswersWithTheCurrentStems(t *testing.T) {
	t.Parallel()
	dir := outdatedIndex(t, "an ad was added", "good evening", "even later", "a lateral move", "adding valves", "ads")
	want := map[string][]int64{"added": {1, 5}, "ad": {1, 6}, "evening": {2}, "even": {3}, "lateral": {4}, "later": {3}, `"good evening"`: {2}, "add*": {1, 5}, "valve": {5}}
	check := func(x *Index) {
		t.Helper()
		for query, ids := range want {
			if diff := cmp.Diff(ids, slices.Sorted(slices.Values(found(t, x, query)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
	}
	x, err := Open(dir, Options{Language: "english", ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if why := x.Outdated(); x.Lost() != nil || why == nil || !strings.Contains(why.Error(), "Snowball 2") {
		t.Errorf("an outdated index that is only read: lost %v, outdated %v", x.Lost(), why)
	}
	check(x)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		x = mustOpen(t, dir, "english")
		check(x)
		x.merges.Wait()
		for _, s := range x.segments {
			if s.Stems != "3.1.1" || x.Len() != 6 || x.Watermark() != 6 {
				t.Errorf("after the rewrite: stems %q, %d documents, watermark %d", s.Stems, x.Len(), x.Watermark())
			}
		}
		check(x)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWithoutStemsNoIndexIsOutdated(t *testing.T) {
	t.Parallel()
	lang, err := words.New("none")
	if err != nil || (&segment{}).outdated(lang) {
		t.Errorf("a segment without stems is outdated: %v", err)
	}
}
