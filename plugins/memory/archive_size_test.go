package memory_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// TestAnArchiveOfManyEntries exports, synchronises and restores a memory. TEA_ARCHIVE_ENTRIES
// sets another number of entries; the log has the times and the largest memory of
// the process.
func TestAnArchiveOfManyEntries(t *testing.T) {
	peertest.Long(t, "it takes seconds")
	withoutRaceDetector(t)
	entries := 10_000
	if text := os.Getenv("TEA_ARCHIVE_ENTRIES"); text != "" {
		var err error
		if entries, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	archives := t.TempDir()
	step := func(name string, do func()) {
		debug.FreeOSMemory()
		_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600) // Linux, as root: the peak begins again
		began := time.Now()
		do()
		t.Logf("%s: %v, peak %s", name, time.Since(began).Round(time.Millisecond), peak())
	}
	dir := t.TempDir()
	from := mustOpen(t, map[string]any{"path": dir, "engine": "sqlite", "memory_mb": 64, "archives": archives})
	step("store", func() {
		for n := 0; n < entries; n += 1000 {
			items := make([]map[string]any, 1000)
			for i := range items {
				items[i] = map[string]any{"key": fmt.Sprintf("sensor/%07d", n+i), "value": map[string]any{"reading": n + i, "text": "the pump is loud"}}
			}
			from.must("ltm.store", map[string]any{"items": items})
		}
	})
	from.close() // it indexes in the background
	from = mustOpen(t, map[string]any{"path": dir, "engine": "sqlite", "memory_mb": 64, "archives": archives})
	step("export", func() { from.must("memory.export", map[string]any{"path": "a"}) })
	from.close()
	synced := map[string]any{"path": t.TempDir(), "engine": "sqlite"}
	from = mustOpen(t, map[string]any{"path": dir, "engine": "sqlite", "memory_mb": 64, "sync": synced})
	step("sync", func() { from.equal("pushed", from.must("memory.sync", nil)["pushed"], int64(entries)) })
	step("sync without changes", func() { from.equal("pushed", from.must("memory.sync", nil)["pushed"], int64(0)) })
	from.close()
	to := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "memory_mb": 64, "archives": archives})
	defer to.close()
	step("restore", func() { to.must("memory.restore", map[string]any{"path": "a"}) })
	to.equal("entries", to.must("memory.inspect", nil)["entries"].(map[string]any)["ltm"], int64(entries))
	last := fmt.Sprintf("sensor/%07d", entries-1)
	to.equal("the last one", to.must("ltm.retrieve", map[string]any{"key": last})["value"].(map[string]any)["reading"], int64(entries-1))
}

var highWater = regexp.MustCompile(`VmHWM:\s*(.*)`)

// peak returns the largest memory of the process, where it can be read.
func peak() string {
	status, _ := os.ReadFile("/proc/self/status")
	if found := highWater.FindSubmatch(status); found != nil {
		return string(found[1])
	}
	return "not known"
}
