package store_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

var update = flag.Bool("update", false, "write the table of the guide")

// The guide has the table of engines.
func TestTheGuideHasTheCapabilitiesOfTheEngines(t *testing.T) {
	t.Parallel()
	const page, start, end = "../../../docs/guide/memory-servers.md", "| `memory.engine` |", "\n\n"
	columns := []struct {
		title string
		of    store.Capability
	}{
		{"`ltm.search` with a `query`", store.FullText},
		{"archives, `memory.sync`", store.Records},
		{"files without `memory.blobs`", store.Contents},
		{"`memory.sql_query`", store.SQL},
		{"`data.*`", store.Tables},
	}
	if len(columns) != len(store.Capabilities()) {
		t.Fatalf("the table has %d columns for the capabilities %v", len(columns), store.Capabilities())
	}
	var b strings.Builder
	b.WriteString(start)
	for _, c := range columns {
		b.WriteString(" " + c.title + " |")
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(columns)+1))
	for _, e := range store.Engines() {
		b.WriteString("\n| `" + e.Name + "` |")
		for _, c := range columns {
			cell := "yes"
			if slices.Contains(e.Lacks, c.of) {
				cell = "no"
			}
			b.WriteString(" " + cell + " |")
		}
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	before, rest, found := strings.Cut(text, start)
	_, after, _ := strings.Cut(rest, end)
	want := before + b.String() + end + after
	switch {
	case !found:
		t.Fatalf("%s has no table that begins with %q", page, start)
	case text != want && *update:
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	case text != want:
		t.Errorf("%s has another table; run go test ./plugins/memory/store -update", page)
	}
}
