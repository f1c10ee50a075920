package checkpoint

import (
	"bytes"
	"encoding/json"
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
	// statusCacheName is the file in which [Store.GC] and [Index.Scan] store what they
	// have read of each journal. GC runs whenever a run starts, and reading the ends of
	// each journal takes five times as long with 1,000 runs (BenchmarkGC). The file can
	// be missing, old or damaged.
	statusCacheName = ".statuses"
	// statusCacheTitle is its first line, which identifies the format.
	statusCacheTitle = "tea statuses 3"
	// statusCacheMin is the number of journals read from which the file is written.
	statusCacheMin = 16
)

// cachedRun describes a run whose journal has this size and time.
type cachedRun struct {
	size, modified int64 // bytes; nanoseconds since 1970
	updated        int64 // nanoseconds since 1970
	status         flow.Status
	// text is info as in the file, which GC does not decode.
	text string
	info *Info
}

// applies reports whether the journal has not changed since.
func (c cachedRun) applies(journal fs.FileInfo) bool {
	return c.size == journal.Size() && c.modified == journal.ModTime().UnixNano()
}

// cachedInfo is an Info in the file. Its ID and Path are empty.
type cachedInfo struct {
	Info
	StartedBy      string `json:"started_by,omitempty"`
	Digest         string `json:"digest,omitempty"`
	FailedBranches int    `json:"failed_branches,omitempty"`
	Input          string `json:"input,omitempty"`
}

// decode sets info if text is valid.
func (c *cachedRun) decode(id, path string) {
	var in cachedInfo
	if c.info != nil || json.Unmarshal([]byte(c.text), &in) != nil || in.Status != c.status {
		return
	}
	info := in.Info
	info.ID, info.Path, info.Size = id, path, c.size
	info.StartedBy, info.Digest, info.FailedBranches, info.Input = in.StartedBy, in.Digest, in.FailedBranches, in.Input
	c.info, c.text = &info, ""
}

// encode returns text.
func (c *cachedRun) encode() string {
	if c.info == nil {
		return c.text
	}
	out := cachedInfo{*c.info, c.info.StartedBy, c.info.Digest, c.info.FailedBranches, c.info.Input}
	out.ID, out.Path = "", ""
	text, _ := json.Marshal(out) // it has strings, numbers and valid times
	return string(text)
}

// readStatusCache reads the file, by run. Invalid lines are ignored.
func (s *Store) readStatusCache() map[string]cachedRun {
	text, err := os.ReadFile(filepath.Join(s.dir, statusCacheName))
	if err != nil {
		return nil
	}
	title, rest, _ := strings.Cut(string(text), "\n")
	if title != statusCacheTitle {
		return nil
	}
	all := make(map[string]cachedRun)
	for line := range strings.Lines(rest) {
		if id, c, ok := parseCachedRun(strings.TrimSuffix(line, "\n")); ok {
			all[id] = c
		}
	}
	return all
}

// parseCachedRun parses a line: id, size, modified, updated, status, description.
func parseCachedRun(line string) (id string, c cachedRun, ok bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) != 6 {
		return "", cachedRun{}, false
	}
	for i, into := range []*int64{&c.size, &c.modified, &c.updated} {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return "", cachedRun{}, false
		}
		*into = n
	}
	c.status, c.text = flow.Status(fields[4]), fields[5]
	return fields[0], c, isStatus(c.status)
}

// writeStatusCache replaces the file. It does not sync it: invalid lines of a
// torn file are ignored.
func (s *Store) writeStatusCache(all map[string]cachedRun) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, statusCacheTitle)
	for id, c := range all {
		fmt.Fprintln(&b, id, c.size, c.modified, c.updated, c.status, c.encode())
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
	now := make(map[string]cachedRun, len(runs))
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
			var err error
			cached, err = s.readRun(c.id, c.journal)
			ok = err == nil && cached.lasts()
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

// readRun describes a run from its journal. If the journal cannot be read, the status
// is empty.
func (s *Store) readRun(id string, journal fs.FileInfo) (cachedRun, error) {
	info, err := infoOf(s.journalPath(id))
	return cachedRun{
		size: journal.Size(), modified: journal.ModTime().UnixNano(),
		updated: info.UpdatedAt.UnixNano(), status: info.Status, info: &info,
	}, err
}

// lasts is false if the description can change without the file: the run is in
// progress, or the file cannot be read.
func (c cachedRun) lasts() bool { return c.status != "" && c.status != flow.Running }
