package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
)

// An engine that replays runs repeats the calls of these actions. An action that is added
// here must not read or change anything outside its run.
func TestActionsThatAReplayRepeats(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	entries, err := h.Actions()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		switch {
		case e.Replay.Repeat:
			got = append(got, strings.Join(append([]string{e.Name}, e.Replay.Unless...), " unless "))
		case e.Replay.Local:
			got = append(got, e.Name+" local")
		}
	}
	slices.Sort(got)
	want := []string{
		"checkpoint.save", "csv.parse unless path", "csv.stringify", "data.filter", "data.merge", "data.validate", "human.ask",
		"json.parse", "json.stringify", "json.transform", "secrets.get", "secrets.mask", "trace.end local", "trace.log local", "trace.start local", "workflow.run",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
