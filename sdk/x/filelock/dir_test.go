package filelock

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Processes that start at the same time remove stale directories while the others
// create theirs.
func TestProcessesThatStartTogetherKeepTheirDirectories(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var starting sync.WaitGroup
	for range 50 {
		starting.Go(func() {
			for range 10 {
				dir, err := MakeDir(base, "tea-test-")
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(dir.Path, dirLock)); err != nil {
					t.Errorf("another process removed it: %v", err)
				}
				if err := dir.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	starting.Wait()
}

func TestDirectoriesOfKilledProcessesAreRemoved(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	long := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		lock bool
		made time.Time
		stay bool
	}{
		"tea-test-killed":       {lock: true, made: time.Now()},
		"tea-test-emptied":      {made: long},
		".tea-test-starting":    {made: time.Now(), stay: true},
		".tea-test-never-began": {lock: true, made: long},
		"somebody-elses":        {made: long, stay: true},
	} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if c.lock {
			if err := os.WriteFile(filepath.Join(dir, dirLock), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(dir, c.made, c.made); err != nil {
			t.Fatal(err)
		}
		removeStale(base, "tea-test-")
		if _, err := os.Stat(dir); (err == nil) != c.stay {
			t.Errorf("%s: stays %t, want %t", name, err == nil, c.stay)
		}
	}
}
