package syncing

import (
	"fmt"
	"testing"
)

// TestMarksOfALongHistory keeps few marks, each with what was seen until then.
func TestMarksOfALongHistory(t *testing.T) {
	t.Parallel()
	h := newHistory()
	const last = 5000
	for i := range int64(last) {
		h.Next = fmt.Sprint(i + 1)
		h.add()
		h.see("ltm", i+1)
		if i == 10 {
			h.see("rows/old", 7)
		}
	}
	if n := len(h.Marks); n < 20 || n > 80 {
		t.Errorf("%d marks", n)
	}
	for _, m := range h.Marks[1:] {
		seen, there := h.seen([]string{h.Marks[0].Token, m.Token})
		if !there || seen["ltm"] != m.Number || m.Number > 11 && seen["rows/old"] != 7 {
			t.Errorf("at mark %d: %v", m.Number, seen)
		}
	}
	if _, there := h.seen([]string{"other"}); there {
		t.Error("an unknown token is there")
	}
	if h.last() != fmt.Sprint(last) {
		t.Errorf("the last token is %q", h.last())
	}
}
