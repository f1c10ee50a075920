package memory_test

import (
	"os"
	"path/filepath"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// databases are the database files in a folder.
func databases(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "memory.*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestTheDatabaseIsOpenedAtTheFirstActionOrWhenAskedFor(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine string) {
		for _, test := range []struct {
			variable string
			setting  bool
			warm     bool
		}{{"", false, false}, {"0", false, false}, {"false", false, false}, {"1", false, true}, {"true", false, true}, {"", true, true}, {"0", true, true}} {
			t.Setenv("DUCKDB_WARMUP", test.variable)
			dir := filepath.Join(t.TempDir(), "memory")
			o := mustOpen(t, map[string]any{"path": dir, "engine": engine, "warmup": test.setting})
			if warm := databases(t, dir) > 0; warm != test.warm {
				t.Errorf("DUCKDB_WARMUP=%s, warmup: %v: opened %v", test.variable, test.setting, warm)
			}
			o.must("ltm.store", map[string]any{"key": "a", "value": 1})
			if databases(t, dir) == 0 {
				t.Error("the first action does not open the database")
			}
			o.close()
		}
	})
}

func TestAnEngineThatThisBuildLacksSaysHowToGetIt(t *testing.T) {
	t.Parallel()
	if len(engines()) > 1 {
		t.Skip("this build has every engine")
	}
	_, err := openBundle(t, map[string]any{"path": t.TempDir(), "engine": "duckdb"})
	if typeOf(err) != tea.DependencyMissing {
		t.Fatalf("%v, want dependency_missing", err)
	}
	for _, way := range []string{"CGO_ENABLED=1", "lite", "settings.memory.engine: sqlite"} {
		if !contains(err, way) {
			t.Errorf("%v\nsays nothing of %s", err, way)
		}
	}
}

// TestASecondInstanceSharesTheFolder shows that the lock is between processes.
func TestASecondInstanceSharesTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "owner.lock"), []byte("half a cla"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o := mustOpen(t, map[string]any{"path": dir})
		o.must("ltm.store", map[string]any{"key": "a", "value": 1})
		o.close()
	}
}
