package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	t.Parallel()
	header := []string{"ACTION", "FROM", "SUMMARY"}
	rows := [][]string{
		{"json.parse", "host", "Parses a text as JSON and reports where the fault is."},
		{"日本.語", "plugin x", "Short."},
	}
	tests := []struct {
		name    string
		columns int
		want    string
	}{
		{"any width", 0, `
ACTION      FROM      SUMMARY
json.parse  host      Parses a text as JSON and reports where the fault is.
日本.語     plugin x  Short.
`},
		{"the last column wraps", 50, `
ACTION      FROM      SUMMARY
json.parse  host      Parses a text as JSON and
                      reports where the fault is.
日本.語     plugin x  Short.
`},
		{"too narrow for columns", 30, `
json.parse
  host
  Parses a text as JSON and
  reports where the fault is.
日本.語
  plugin x  Short.
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := Table(&out, test.columns, header, rows); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), out.String()); diff != "" {
				t.Error(diff)
			}
			for line := range strings.Lines(out.String()) {
				if width := textWidth(strings.TrimRight(line, "\n")); test.columns > 0 && width > test.columns {
					t.Errorf("line of %d cells: %q", width, line)
				}
			}
		})
	}
}

func TestNumbersInANarrowTableHaveLabels(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	header := []string{"HOST", "PLUGIN", "STATE", "PID", "GENERATION", "CALLS", "RSS"}
	if err := Table(&out, 40, header, [][]string{{"18668", "greet", "running", "18685", "2", "120", "4.8 MiB"}, {"18669", "text", "idle", "-", "1", "0", "-"}}); err != nil {
		t.Fatal(err)
	}
	want := `18668
  greet  running  pid 18685
  generation 2  calls 120  rss 4.8 MiB
18669
  text  idle  pid -  generation 1
  calls 0  rss -
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
