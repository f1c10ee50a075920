package flowtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const lines = `{"action":"a.b","params":{"x":1.0},"result":{"v":9007199254740993}}
{"action":"a.b","params":{"x":1.0},"result":null}
{"action":"a.b","error":{"details":{"n":1},"message":"m","retryable":true,"source":"s","type":"timeout"},"params":{}}
{"action":"a.c","params":{"x":1.0},"result":2.0}
`

// The order is that of actions and parameters, and within them that of the calls.
func TestRecordingIsSorted(t *testing.T) {
	t.Parallel()
	sorted := strings.SplitAfter(strings.TrimSuffix(lines, "\n"), "\n")
	sorted[3] += "\n"
	mixed := sorted[3] + sorted[0] + sorted[2] + sorted[1]
	recorded, err := readText(t, mixed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines, written(t, recorded)); diff != "" {
		t.Error(diff)
	}
}

func readText(t *testing.T, text string) (tape, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readTape(file)
}

func written(t *testing.T, recorded tape) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "new", "r.jsonl")
	if err := recorded.write(file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestRecordedErrorKeepsItsDetails(t *testing.T) {
	t.Parallel()
	recorded, err := readText(t, lines)
	if err != nil {
		t.Fatal(err)
	}
	failure := asFailure(map[string]any{"error": recorded["a.b with {}"][0]["error"]})
	if failure == nil || failure.Error() != "timeout: m (s)" || !failure.Retryable || failure.Details["n"] != int64(1) {
		t.Errorf("failure = %v", failure)
	}
}

func FuzzReadTape(f *testing.F) {
	f.Add([]byte(lines))
	f.Add([]byte(`{"action":"a.b","params":{},"error":3}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		recorded, err := readText(t, string(data))
		if err != nil || len(recorded) == 0 {
			return
		}
		again, err := readText(t, written(t, recorded))
		if diff := cmp.Diff(recorded, again); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}
