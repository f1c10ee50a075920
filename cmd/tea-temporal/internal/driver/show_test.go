package driver

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

const (
	shownDone = `
name: partly
nodes:
  - {name: fan}
  - {name: good, run: "return {good = true}"}
  - {name: bad, run: "error('no')"}
  - {name: skipped, if: "false", run: "return {}"}
  - {name: join, run: "return {branches = #parallel_results}"}
edges:
  - {from: fan, parallel: [good, bad], fan_in: join}
  - {from: good, to: join}
  - {from: bad, to: join}
  - {from: join, to: skipped}
`
	shownFailed = `
name: failing
nodes:
  - {name: first, uses: json.parse, with: {text: "1"}, output: a}
  - {name: parts, type: while_loop, condition: "true", max_iterations: 2, body: [{name: one, run: "return {one = 1}"}, {name: two, run: "error('broken')"}]}
  - {name: never, run: "return {}"}
`
	shownWaiting = `
name: asking
nodes:
  - {name: first, uses: json.parse, with: {text: "1"}, output: a}
  - {name: ask, uses: human.ask, with: {question: "go?", choices: ["yes", "no"]}, output: answer}
  - {name: last, run: "return {}"}
`
)

// differs matches the lines of a description that cannot be alike here and on
// Temporal.
var differs = regexp.MustCompile(`(?m)^(started|updated|checkpoint|resume with) .*\n?`)

// shownAlike decodes a JSON text without the members that cannot be alike.
func shownAlike(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				strip(e)
			}
		case map[string]any:
			for _, key := range []string{"started_at", "updated_at", "size", "ts", "seq", "duration_ms", "asked_at"} {
				delete(v, key)
			}
			if place, _ := v["path"].(string); strings.HasSuffix(place, ".tea") || strings.HasPrefix(place, "temporal:") {
				delete(v, "path")
			}
			for _, e := range v {
				strip(e)
			}
		}
	}
	strip(v)
	if page, ok := v.(map[string]any); ok && page["events"] != nil {
		// Temporal itself shows the parameters and results of nodes.
		events := slices.DeleteFunc(page["events"].([]any), func(e any) bool { return e.(map[string]any)["event"] == string(flow.EventValues) })
		page["events"] = events
		sort.Slice(events, func(i, j int) bool { return fmt.Sprint(events[i]) < fmt.Sprint(events[j]) })
	}
	return v
}

func TestRunsAreShownLikeLocalRuns(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	pageData := regexp.MustCompile(`(?s)<script type="application/json" id="run">(.*?)</script>`)
	for name, text := range map[string]string{"done": shownDone, "failed": shownFailed, "waiting": shownWaiting} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wf, err := h.Load(write(t, "flow.yaml", text), host.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer wf.Close()
			o := host.RunOptions{RunID: host.NewRunID(), CheckpointDir: filepath.Join(t.TempDir(), "runs"), Hold: true}
			if _, err := wf.Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if _, err := (Engine{}).Run(t.Context(), s.flags, teacmd.Job{Workflow: wf, Options: host.RunOptions{RunID: o.RunID}}); err != nil {
				t.Fatal(err)
			}
			for _, words := range [][]string{
				{"inspect"},
				{"inspect", "--format", "json"},
				{"inspect", "--format", "dot"},
				{"inspect", "--format", "mermaid"},
				{"inspect", "--format", "svg"},
				{"runs", "show"},
				{"runs", "show", "--json"},
				{"runs", "show", "--html"},
			} {
				here, there := output(t, command(t, "-", append(words, o.RunID, "-c", o.CheckpointDir)...)), s.output(append(words, o.RunID)...)
				var want, got any = differs.ReplaceAllString(here, ""), differs.ReplaceAllString(there, "")
				switch words[len(words)-1] {
				case "--json":
					want, got = shownAlike(t, here), shownAlike(t, there)
				case "--html":
					want, got = shownAlike(t, pageData.FindStringSubmatch(here)[1]), shownAlike(t, pageData.FindStringSubmatch(there)[1])
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("tea %q differs (-local +temporal):\n%s", words, diff)
				}
			}
		})
	}
}
