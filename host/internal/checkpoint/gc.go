package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// Policy determines which runs [Store.GC] removes. A zero field sets no limit; a
// negative count keeps none.
//
// Runs that a live process owns are never removed, nor are files that cannot be
// read, which may come from a newer tea.
type Policy struct {
	// MaxCount, MaxAge and MaxBytes apply to runs that are done, including their
	// events: GC keeps the newest MaxCount, none older than MaxAge, and as many as
	// fit in MaxBytes after the runs that are not done.
	MaxCount int
	MaxAge   time.Duration
	MaxBytes int64
	// MaxUnfinishedAge applies to waiting, failed and stopped runs, which can
	// still be resumed.
	MaxUnfinishedAge time.Duration
	// MaxUnfinished and MaxUnfinishedBytes apply to failed and stopped runs, not
	// to waiting ones: GC keeps the newest MaxUnfinished, and older ones only
	// until the newer ones take MaxUnfinishedBytes.
	MaxUnfinished      int
	MaxUnfinishedBytes int64
}

// DefaultPolicy is applied when a new run starts. A device with a run that fails
// every minute must not fill its disk.
func DefaultPolicy() Policy {
	const day = 24 * time.Hour
	return Policy{
		MaxCount: 100, MaxAge: 30 * day, MaxBytes: 256 << 20,
		MaxUnfinishedAge: 90 * day, MaxUnfinished: 1000, MaxUnfinishedBytes: 256 << 20,
	}
}

// candidate is a run that GC considers: a journal with its events, or only the
// events of a run without a journal.
type candidate struct {
	id              string
	journal, events fs.FileInfo // when examined; nil if there is none
	updated         time.Time
	size            int64
	status          flow.Status // empty if the journal cannot be read
}

// protected reports whether the run is never removed.
func (c *candidate) protected() bool { return c.status == "" || c.status == flow.Running }

// GC removes the runs that policy does not keep at the time now, and temporary
// files of crashed creations. It returns the ids of the removed runs. It skips
// runs that are in use or change meanwhile; an error for one run does not prevent
// the removal of others.
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

// choose returns the runs to remove, oldest first.
func (p Policy) choose(runs []*candidate, now time.Time) []*candidate {
	sort.Slice(runs, func(i, k int) bool { return runs[k].updated.Before(runs[i].updated) })
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
		// After a run that does not fit, no older one is kept.
		full = full || p.MaxBytes > 0 && bytes+c.size > p.MaxBytes || p.MaxCount != 0 && count >= p.MaxCount
		if full || p.MaxAge > 0 && now.Sub(c.updated) > p.MaxAge {
			out = append(out, c)
			continue
		}
		count++
		bytes += c.size
	}
	sort.SliceStable(out, func(i, k int) bool { return out[i].updated.Before(out[k].updated) })
	return out
}

// chooseUnfinished returns the runs to remove. runs are not done and sorted
// newest first.
func (p Policy) chooseUnfinished(runs []*candidate, now time.Time) []*candidate {
	var out []*candidate
	var bytes int64
	count := 0
	for _, c := range runs {
		if c.protected() {
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

// removeUnchanged deletes the files of an unchanged run without an owner, the
// journal first: a crash then leaves events without a journal, which the next GC
// finds. It reports whether the run is gone.
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
	var locked *InUseError
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return true, nil
	case errors.As(err, &locked), errors.Is(err, errChanged):
		return false, nil
	}
	return false, err
}

// candidates examines all runs of the store and removes leftover temporary
// files.
func (s *Store) candidates(now time.Time) ([]*candidate, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	byID := map[string]*candidate{}
	for _, e := range entries {
		stat, err := e.Info()
		if err != nil || !stat.Mode().IsRegular() {
			continue // removed meanwhile, or not a run's file
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

// removeLeftover deletes the temporary file of a crashed creation.
func removeLeftover(path string, stat fs.FileInfo, now time.Time) {
	name := stat.Name()
	if !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, journalSuffix+tempSuffix) || now.Sub(stat.ModTime()) < time.Hour {
		return
	}
	_ = removeOwned(path, stat) // the next GC tries again
}

// Remove deletes a run and its events, whatever its status. run is an argument of
// [Store.Find]. The error is a [*InUseError] if the run is in use.
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

// errChanged reports that a file has changed since it was chosen.
var errChanged = errors.New("the file has changed")

// removeOwned locks a file, so that it is not in use, and deletes it. If before
// is set and the file has changed since, the error is errChanged.
func removeOwned(path string, before fs.FileInfo) error {
	f, err := openFile(path, os.O_RDWR|nonBlock, 0)
	if err != nil {
		return err
	}
	defer func() { _ = releaseFile(f) }()
	if err := lockFile(f, path); err != nil {
		return err
	}
	if err := checkNotRemoved(f, path); err != nil {
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
