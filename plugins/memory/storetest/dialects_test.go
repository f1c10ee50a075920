package storetest_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

var update = flag.Bool("update", false, "write the table of the guide")

// The table in the guide is the one that the tests of the engines assert.
func TestTheGuideHasTheDifferencesOfTheDialects(t *testing.T) {
	t.Parallel()
	const page, start, end = "../../../docs/guide/memory-tables.md", "| statement |", "\n\n"
	var b strings.Builder
	b.WriteString(start + " DuckDB 1.5.6 | SQLite | PostgreSQL 15 |\n| --- | --- | --- | --- |")
	for _, d := range storetest.Differences() {
		cells := []string{d.Query, d.Answers[store.DuckDB], d.Answers[store.SQLite], d.Answers[store.PostgreSQL]}
		b.WriteString("\n|")
		for i, cell := range cells {
			if len(cell) > 100 && i > 0 {
				cell = "all digits of the number"
			}
			b.WriteString(" `" + cell + "` |")
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
		t.Errorf("%s has another table; run go test ./plugins/memory/storetest -update", page)
	}
}
