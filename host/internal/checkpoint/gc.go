package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// Policy says which runs [Store.GC] removes. A zero field sets no limit;
// of a negative count none stays.
//
// Nothing ever removes a run that a live process owns, or a file that cannot
// be read: it may be a newer tea's.
type Policy struct {
	// MaxCount, MaxAge and MaxBytes are for runs that are done, counted with
	// their events: the newest MaxCount stay, none older than MaxAge, and as
	// many as fit in MaxBytes after the runs that are not done.
	MaxCount int
	MaxAge   time.Duration
	MaxBytes int64
	// MaxUnfinishedAge is for runs that wait, failed or were stopped: they may
	// still be resumed.
	MaxUnfinishedAge time.Duration
	// MaxUnfinished and MaxUnfinishedBytes are for runs that failed or were
	// stopped, not for those that wait: the newest MaxUnfinished stay, and
	// older ones only until those that are newer take MaxUnfinishedBytes.
	MaxUnfinished      int
	MaxUnfinishedBytes int64
}

// DefaultPolicy is what applies when a new run starts. A device that fails
// every minute must not fill its disk.
func DefaultPolicy() Policy {
	const day = 24 * time.Hour
	return Policy{
		MaxCount: 100, MaxAge: 30 * day, MaxBytes: 256 << 20,
		MaxUnfinishedAge: 90 * day, MaxUnfinished: 1000, MaxUnfinishedBytes: 256 << 20,
	}
}

// candidate is a run that GC decides on: a journal with its events, or the
// events alone of a run that kept no journal.
type candidate struct {
	id              string
	journal, events fs.FileInfo // as they were when looked at; nil where there is none
	updated         time.Time
	size            int64
	status          flow.Status // empty where the journal cannot be read
}

// kept reports whether the run is never removed.
func (c *candidate) kept() bool { return c.status == "" || c.status == flow.Running }

// GC removes the runs that policy does not keep at the time now, and temporary
// files that a crash left. It returns the ids of the removed runs. A run that is
// in use, or changes meanwhile, stays; an error for one run does not keep the
// others from being removed.
func (s *Store) GC(policy Policy, now time.Time) ([]string, error) {
	runs, err := s.candidates(now)
	if err != nil {
		return nil, err
	}
	var removed []string
	var failed []error
	for _, c := range policy.choose(runs, now) {
		ok, err := s.removeUnchanged(c)
		if err != nil {
			failed = append(failed, fmt.Errorf("remove run %s: %w", c.id, err))
		}
		if ok {
			removed = append(removed, c.id)
		}
	}
	return removed, errors.Join(failed...)
}

// Prunable returns the ids of the runs that [Store.GC] would remove now.
func (s *Store) Prunable(policy Policy, now time.Time) ([]string, error) {
	runs, err := s.candidates(now)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range policy.choose(runs, now) {
		ids = append(ids, c.id)
	}
	return ids, nil
}

// choose returns the runs to remove, the oldest first.
func (p Policy) choose(runs []*candidate, now time.Time) []*candidate {
	slices.SortFunc(runs, func(a, b *candidate) int { return b.updated.Compare(a.updated) })
	var left []*candidate
	var bytes int64
	for _, c := range runs {
		if c.status != flow.Done {
			left = append(left, c)
			bytes += c.size
		}
	}
	out := p.chooseUnfinished(left, now)
	for _, c := range out {
		bytes -= c.size
	}
	count, full := 0, false
	for _, c := range runs {
		if c.status != flow.Done {
			continue
		}
		// Once one does not fit, no older one stays in its place.
		full = full || p.MaxBytes > 0 && bytes+c.size > p.MaxBytes || p.MaxCount != 0 && count >= p.MaxCount
		if full || p.MaxAge > 0 && now.Sub(c.updated) > p.MaxAge {
			out = append(out, c)
			continue
		}
		count++
		bytes += c.size
	}
	slices.SortStableFunc(out, func(a, b *candidate) int { return a.updated.Compare(b.updated) })
	return out
}

// chooseUnfinished returns those of the runs, which are not done and sorted with
// the newest first, that are to be removed.
func (p Policy) chooseUnfinished(runs []*candidate, now time.Time) []*candidate {
	var out []*candidate
	var bytes int64
	count := 0
	for _, c := range runs {
		if c.kept() {
			continue
		}
		old := p.MaxUnfinishedAge > 0 && now.Sub(c.updated) > p.MaxUnfinishedAge
		if c.status != flow.Waiting {
			old = old || p.MaxUnfinished != 0 && count >= p.MaxUnfinished || p.MaxUnfinishedBytes > 0 && bytes >= p.MaxUnfinishedBytes
			count++
			bytes += c.size
		}
		if old {
			out = append(out, c)
		}
	}
	return out
}

// removeUnchanged deletes the files of a run that has no owner and that is as
// it was, the journal first: what a crash leaves then are events without a
// journal, which the next GC finds. It reports whether the run is gone.
func (s *Store) removeUnchanged(c *candidate) (bool, error) {
	if c.journal != nil {
		if gone, err := removeUnchangedFile(s.journalPath(c.id), c.journal); !gone {
			return false, err
		}
	}
	if c.events == nil {
		return true, nil
	}
	gone, err := removeUnchangedFile(s.EventsPath(c.id), c.events)
	return gone || c.journal != nil, err
}

func removeUnchangedFile(path string, before fs.FileInfo) (gone bool, err error) {
	err = removeOwned(path, before)
	var locked *LockedError
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return true, nil
	case errors.As(err, &locked), errors.Is(err, errChanged):
		return false, nil
	}
	return false, err
}

// candidates looks at all runs of the store, and removes the temporary files
// that are left over.
func (s *Store) candidates(now time.Time) ([]*candidate, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	byID := map[string]*candidate{}
	for _, e := range entries {
		stat, err := e.Info()
		if err != nil || !stat.Mode().IsRegular() {
			continue // removed meanwhile, or not ours
		}
		id, isJournal := strings.CutSuffix(e.Name(), journalSuffix)
		id, isEvents := strings.CutSuffix(id, eventsSuffix)
		if isJournal == isEvents || checkRunID(id) != nil {
			removeLeftover(filepath.Join(s.dir, e.Name()), stat, now)
			continue
		}
		c := byID[id]
		if c == nil {
			c = &candidate{id: id}
			byID[id] = c
		}
		if isJournal {
			c.journal = stat
		} else {
			c.events = stat
		}
	}
	runs := make([]*candidate, 0, len(byID))
	for _, c := range byID {
		runs = append(runs, c)
	}
	s.fillStatuses(runs)
	return runs, nil
}

// removeLeftover deletes a temporary file of a creation that a crash ended.
func removeLeftover(path string, stat fs.FileInfo, now time.Time) {
	name := stat.Name()
	if !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, journalSuffix+tempSuffix) || now.Sub(stat.ModTime()) < time.Hour {
		return
	}
	_ = removeOwned(path, stat) // the next GC tries again
}

// Remove deletes a run and its events, whatever its status; a [*LockedError]
// where it is in use. run is what [Store.Find] takes.
func (s *Store) Remove(run string) error {
	path, err := s.Find(run)
	if err != nil {
		return err
	}
	id := strings.TrimSuffix(filepath.Base(path), journalSuffix)
	for _, path := range []string{path, s.EventsPath(id)} {
		if err := removeOwned(path, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove run %s: %w", id, err)
		}
	}
	return nil
}

// errChanged says that a file is not what it was when it was chosen.
var errChanged = errors.New("the file has changed")

// removeOwned deletes a file after having become its owner, so that nobody
// uses it. With before, it must not have changed since; errChanged otherwise.
func removeOwned(path string, before fs.FileInfo) error {
	f, err := openFile(path, os.O_RDWR|nonBlock, 0)
	if err != nil {
		return err
	}
	defer func() { _ = releaseFile(f) }()
	if err := lockFile(f, path); err != nil {
		return err
	}
	if err := checkStillThere(f, path); err != nil {
		return err
	}
	if before != nil {
		now, err := f.Stat()
		if err != nil {
			return err
		}
		if now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
			return errChanged
		}
	}
	return os.Remove(path)
}
