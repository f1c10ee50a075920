package flow_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/host/flow"
)

func TestEventIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	large := json.Number(new(big.Int).Lsh(big.NewInt(1), 80).String())
	want := flow.Event{
		Seq: 1<<53 + 1, Time: time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC), RunID: "r", Type: flow.EventNodeEnd, Node: "n", Path: "m[0]/n",
		Fields: []flow.Field{{Key: "duration_ms", Value: 1.5}, {Key: "large", Value: large}, {Key: "n", Value: int64(1<<53 + 1)}, {Key: "nothing", Value: nil}, {Key: "update", Value: map[string]any{"a": []any{int64(1)}}}},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got flow.Event
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b flow.Field) bool { return a.Key < b.Key })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := json.Unmarshal([]byte(`{"ts": "yesterday"}`), &got); err == nil {
		t.Error("an invalid time is accepted")
	}
}
