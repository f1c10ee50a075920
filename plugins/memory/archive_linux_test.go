package memory_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

// noise returns entries that cannot be compressed.
func noise(entries, bytes int) []map[string]any {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's data
	items := make([]map[string]any, entries)
	for i := range items {
		text := make([]byte, bytes)
		for n := range text {
			text[n] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[random.IntN(62)]
		}
		items[i] = map[string]any{"key": fmt.Sprint(i), "value": string(text)}
	}
	return items
}

func TestArchivesOnAFullDisk(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it fills disks")
	withoutRaceDetector(t)
	archives, small := t.TempDir(), smalldisktest.New(t, "40m")
	from := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "archives": small.Dir})
	from.must("ltm.store", map[string]any{"key": "first", "value": 1})
	from.must("memory.export", map[string]any{"path": "a"})
	from.must("ltm.store", map[string]any{"namespace": "n", "items": noise(30, 100_000)})
	small.Fill(t, 1<<20)
	if _, err := from.call("memory.export", map[string]any{"path": "a"}); typeOf(err) != tea.ResourceExhausted {
		t.Errorf("an export to a full disk: %v", err)
	}
	from.close()
	from = mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "archives": small.Dir})
	from.must("memory.restore", map[string]any{"path": "a"})
	from.equal("what the archive still has", from.must("ltm.retrieve", map[string]any{"key": "first"})["value"], int64(1))
	if left, err := filepath.Glob(filepath.Join(small.Dir, ".*a*")); err != nil || len(left) > 0 {
		t.Errorf("the export has left %v, %v", left, err)
	}
	small.Free(t)
	from.close()
	if err := os.Remove(filepath.Join(small.Dir, "a")); err != nil {
		t.Fatal(err)
	}

	from = mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "archives": archives})
	defer from.close()
	from.must("ltm.store", map[string]any{"items": noise(1000, 10_000)})
	from.must("memory.backup", map[string]any{"path": "b"})
	to := mustOpen(t, map[string]any{"path": filepath.Join(small.Dir, "memory"), "engine": "sqlite", "archives": archives})
	defer to.close()
	to.must("memory.inspect", nil)
	small.Fill(t, 9<<20)
	if _, err := to.call("memory.restore", map[string]any{"path": "b"}); typeOf(err) != tea.ResourceExhausted {
		t.Errorf("a restore on a full disk: %v", err)
	}
	small.Free(t)
	r := to.must("memory.restore", map[string]any{"path": "b"})
	to.equal("resumed", r["resumed"], true)
	to.equal("entries", to.must("memory.inspect", nil)["entries"].(map[string]any)["ltm"], int64(1000))
	if _, unfinished := to.must("memory.inspect", nil)["entries"].(map[string]any)["tea_import"]; unfinished {
		t.Error("the import is not finished")
	}
}
