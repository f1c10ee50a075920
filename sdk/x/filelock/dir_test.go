package subproc

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Hosts that start at the same time tidy up while the others make theirs.
func TestHostsThatStartTogetherKeepTheirDirectories(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("/tmp", "teadirs") //nolint:usetesting // t.TempDir is too deep for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	var starting sync.WaitGroup
	for range 50 {
		starting.Go(func() {
			for range 10 {
				dir, err := newRunDir([]string{base})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(dir.path, lockName)); err != nil {
					t.Errorf("another host took it: %v", err)
				}
				if err := dir.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	starting.Wait()
}

func TestDeadHostsDirectoriesGo(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	long := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		lock bool
		made time.Time
		stay bool
	}{
		runDirPrefix + "killed":   {lock: true, made: time.Now()},
		runDirPrefix + "emptied":  {made: long},
		newPrefix + "starting":    {made: time.Now(), stay: true},
		newPrefix + "never-began": {lock: true, made: long},
		"somebody-elses":          {made: long, stay: true},
	} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if c.lock {
			if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(dir, c.made, c.made); err != nil {
			t.Fatal(err)
		}
		removeStale(base)
		if _, err := os.Stat(dir); (err == nil) != c.stay {
			t.Errorf("%s: stays %t, want %t", name, err == nil, c.stay)
		}
	}
}
