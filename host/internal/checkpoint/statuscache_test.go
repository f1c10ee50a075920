package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

// cachedStore makes a store of failed runs, a-00 the oldest, whose statuses GC
// has cached.
func cachedStore(t *testing.T) (*Store, []string) {
	t.Helper()
	s := testStore(t)
	var ids []string
	for i := range statusCacheMin {
		ids = append(ids, fmt.Sprintf("a-%02d", i))
		agedRun(t, s, ids[i], flow.Failed, time.Duration(statusCacheMin-i)*time.Hour, 0)
	}
	gcRemoves(t, s, Policy{}, nil)
	if _, err := os.Stat(filepath.Join(s.Dir(), statusCacheName)); err != nil {
		t.Fatal("no cache was written: ", err)
	}
	return s, ids
}

func gcRemoves(t *testing.T, s *Store, p Policy, want []string) {
	t.Helper()
	got, err := s.GC(p, testTime)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}

func TestGCReadsAJournalOnce(t *testing.T) {
	t.Parallel()
	s, ids := cachedStore(t)
	// Of the same length and age, but nothing that could be read.
	path := s.journalPath(ids[0])
	stat, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, stat.Size()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, stat.ModTime(), stat.ModTime()); err != nil {
		t.Fatal(err)
	}
	gcRemoves(t, s, Policy{MaxUnfinished: statusCacheMin - 2}, ids[:2])
}

func TestGCNoticesAContinuedRun(t *testing.T) {
	t.Parallel()
	s, ids := cachedStore(t)
	j, _, err := s.Open(ids[0], flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(statusRecord(flow.Done, "x")), j.Close()); err != nil {
		t.Fatal(err)
	}
	gcRemoves(t, s, Policy{MaxUnfinished: statusCacheMin - 2}, ids[1:2])
}

func TestGCWithoutItsCache(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":         "",
		"another tea":   "tea statuses 1\na-00 1 2 3 done\n",
		"torn":          statusCacheTitle + "\na-00 12",
		"no status":     statusCacheTitle + "\na-00 1 2 3 finished {}\n",
		"other numbers": statusCacheTitle + "\na-00 1 2 3 done {}\n",
		"binary":        statusCacheTitle + "\n\x00\xff\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ids := cachedStore(t)
			if err := os.WriteFile(filepath.Join(s.Dir(), statusCacheName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			gcRemoves(t, s, Policy{MaxUnfinished: statusCacheMin - 1}, ids[:1])
		})
	}
}
