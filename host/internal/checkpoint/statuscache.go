package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

const (
	// statusCacheName is the file in which [Store.GC] stores the status of each
	// run. GC runs whenever a run starts, and reading the last record of each
	// journal takes five times as long with 1,000 runs (BenchmarkGC). The file can
	// be missing, old or damaged.
	statusCacheName = ".statuses"
	// statusCacheTitle is its first line, which identifies the format.
	statusCacheTitle = "tea statuses 1"
	// statusCacheMin is the number of journals read from which GC writes the file.
	statusCacheMin = 16
)

// cachedStatus is the status of a run whose journal has this size and time.
type cachedStatus struct {
	size, modified int64 // bytes; nanoseconds since 1970
	updated        int64 // nanoseconds since 1970
	status         flow.Status
}

// applies reports whether the journal has not changed since.
func (c cachedStatus) applies(journal fs.FileInfo) bool {
	return c.size == journal.Size() && c.modified == journal.ModTime().UnixNano()
}

// readStatusCache reads the file, by run. Invalid lines are ignored.
func (s *Store) readStatusCache() map[string]cachedStatus {
	text, err := os.ReadFile(filepath.Join(s.dir, statusCacheName))
	if err != nil {
		return nil
	}
	title, rest, _ := strings.Cut(string(text), "\n")
	if title != statusCacheTitle {
		return nil
	}
	all := make(map[string]cachedStatus)
	for line := range strings.Lines(rest) {
		if id, c, ok := parseCachedStatus(line); ok {
			all[id] = c
		}
	}
	return all
}

// parseCachedStatus parses a line: id, size, modified, updated, status.
func parseCachedStatus(line string) (id string, c cachedStatus, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return "", cachedStatus{}, false
	}
	for i, into := range []*int64{&c.size, &c.modified, &c.updated} {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return "", cachedStatus{}, false
		}
		*into = n
	}
	c.status = flow.Status(fields[4])
	return fields[0], c, isStatus(c.status)
}

// writeStatusCache replaces the file. It does not sync it: invalid lines of a
// torn file are ignored.
func (s *Store) writeStatusCache(all map[string]cachedStatus) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, statusCacheTitle)
	for id, c := range all {
		fmt.Fprintln(&b, id, c.size, c.modified, c.updated, c.status)
	}
	f, err := os.CreateTemp(s.dir, statusCacheName+"-*"+journalSuffix+tempSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, statusCacheName))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // else the next GC does
	}
	return err
}

// fillStatuses determines the size, the status and the last change of each run.
// It reads only journals that have changed since the last time.
func (s *Store) fillStatuses(runs []*candidate) {
	known := s.readStatusCache()
	now := make(map[string]cachedStatus, len(runs))
	read := 0
	for _, c := range runs {
		if c.events != nil {
			c.updated, c.size, c.status = c.events.ModTime(), c.events.Size(), flow.Done
		}
		if c.journal == nil {
			// Events without a journal belong to a run that succeeded, or to one
			// in progress that owns them.
			continue
		}
		cached, ok := known[c.id]
		if !ok || !cached.applies(c.journal) {
			read++
			cached, ok = s.readStatus(c)
		}
		c.updated, c.status = time.Unix(0, cached.updated), cached.status
		c.size += c.journal.Size()
		if ok {
			now[c.id] = cached
		}
	}
	if read >= statusCacheMin {
		_ = s.writeStatusCache(now) // on failure, the next GC reads them again
	}
}

// readStatus reads the status of a run from its journal. lasts is false if the
// status can change without the file: the run is in progress, or the file cannot
// be read, which leaves the status empty.
func (s *Store) readStatus(r *candidate) (c cachedStatus, lasts bool) {
	info, err := infoOf(s.journalPath(r.id))
	c = cachedStatus{
		size: r.journal.Size(), modified: r.journal.ModTime().UnixNano(),
		updated: info.UpdatedAt.UnixNano(), status: info.Status,
	}
	return c, err == nil && info.Status != flow.Running
}
