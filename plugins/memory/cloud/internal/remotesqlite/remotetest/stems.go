package remotetest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// OlderStemsSQL replaces the words of the entry "older" by what Snowball 2 would have written.
const OlderStemsSQL = "INSERT OR REPLACE INTO ltm_text (rowid, stems, spelled, forms) SELECT id, 'older __ valv ad __', '', 'older valves added' FROM ltm WHERE key = 'older'"

// OlderStems searches entries with the stems of two versions. age replaces the words of the entry "older" by the older
// stems, in which added has the stem ad.
func OlderStems(t *testing.T, s *store.Stores, age func()) {
	put := func(key, value string) {
		t.Helper()
		if _, err := s.LongTerm.Store(t.Context(), store.Entry{Key: key, Value: json.RawMessage(value)}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want map[string][]string) {
		t.Helper()
		for text, keys := range want {
			found, err := s.LongTerm.Search(t.Context(), store.Search{Text: text, Limit: 10})
			if err != nil {
				t.Fatal(text, err)
			}
			got, expected := map[string]bool{}, map[string]bool{}
			for _, e := range found.Found {
				got[e.Key] = true
			}
			for _, key := range keys {
				expected[key] = true
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
		}
	}
	put("older", `"valves added"`)
	put("newer", `"valves added"`)
	put("advert", `"valves in an ad"`)
	age()
	check(map[string][]string{
		"valve": {"older", "newer", "advert"}, "added": {"older", "newer"}, `"valves added"`: {"older", "newer"}, "add": {"older", "newer"},
		"ad": {"older", "advert"}, "ad*": {"older", "newer", "advert"}, "added ad": {"older", "newer", "advert"},
	})
	put("older", `"valves added again"`)
	check(map[string][]string{"added": {"older", "newer"}, "add": {"older", "newer"}, "ad": {"advert"}})
}
