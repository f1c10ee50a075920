package remotesqlite

import (
	"encoding/json"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
)

// A call that an earlier version of the plugin did can be repeated after an update: its
// result has the positions of the existing rows without their numbers.
func TestTheResultOfAnEarlierVersionIsRead(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]int64{`[]`: 0, `[1]`: 1, `[[1, 7]]`: 7, `[1, 2, 3]`: 1} {
		writes := []*tabular.RowWrite{{Key: "a"}, {Key: "b"}}
		if err := (rowList{writes: writes}).readBefore(json.RawMessage(result)); err != nil {
			t.Errorf("%s: %v", result, err)
		}
		if writes[0].Before != 0 || writes[1].Before != want {
			t.Errorf("%s: the numbers are %d and %d, want 0 and %d", result, writes[0].Before, writes[1].Before, want)
		}
	}
	if err := (rowList{}).readBefore(json.RawMessage(`{}`)); err == nil {
		t.Error("an object is read as a result")
	}
}
