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
)

const (
	// judgedName is the file that spares [Store.GC] to open each journal again
	// and again. It may be missing, old or damaged: what it does not tell is
	// looked up.
	judgedName = ".judged"
	// judgedTitle is its first line; another one is another format.
	judgedTitle = "tea judged 1"
	// judgedWorth is how many journals must have been opened to write it.
	judgedWorth = 50
)

// judged is how a run was found to stand when its journal was as long and as
// old as it says.
type judged struct {
	size, modified int64 // bytes; nanoseconds since 1970
	updated        int64 // nanoseconds since 1970
	status         string
}

// applies tells whether the journal is as it was.
func (j judged) applies(journal fs.FileInfo) bool {
	return j.size == journal.Size() && j.modified == journal.ModTime().UnixNano()
}

// readJudged reads the file, by run. Lines that make no sense are left out.
func (s *Store) readJudged() map[string]judged {
	text, err := os.ReadFile(filepath.Join(s.dir, judgedName))
	if err != nil {
		return nil
	}
	title, rest, _ := strings.Cut(string(text), "\n")
	if title != judgedTitle {
		return nil
	}
	all := make(map[string]judged)
	for line := range strings.Lines(rest) {
		if id, j, ok := parseJudged(line); ok {
			all[id] = j
		}
	}
	return all
}

// parseJudged reads a line: id, size, modified, updated, status.
func parseJudged(line string) (id string, j judged, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return "", judged{}, false
	}
	for i, into := range []*int64{&j.size, &j.modified, &j.updated} {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return "", judged{}, false
		}
		*into = n
	}
	j.status = fields[4]
	return fields[0], j, isStatus(j.status)
}

// writeJudged replaces the file. It needs no sync: a torn one has lines that
// make no sense.
func (s *Store) writeJudged(all map[string]judged) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, judgedTitle)
	for id, j := range all {
		fmt.Fprintln(&b, id, j.size, j.modified, j.updated, j.status)
	}
	f, err := os.CreateTemp(s.dir, judgedName+"-*"+journalSuffix+tempSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, judgedName))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // else the next GC does
	}
	return err
}

// judge says how the runs stand, and opens the journals that have changed
// since it was asked last.
func (s *Store) judge(runs []*candidate) {
	known := s.readJudged()
	now := make(map[string]judged, len(runs))
	opened := 0
	for _, c := range runs {
		if c.events != nil {
			c.updated, c.size, c.status = c.events.ModTime(), c.events.Size(), StatusDone
		}
		if c.journal == nil {
			// Events without a journal are those of a run that ended well, or
			// of one that is going on and owns them.
			continue
		}
		j, ok := known[c.id]
		if !ok || !j.applies(c.journal) {
			opened++
			j, ok = s.look(c)
		}
		c.updated, c.status = time.Unix(0, j.updated), j.status
		c.size += c.journal.Size()
		if ok {
			now[c.id] = j
		}
	}
	if opened >= judgedWorth {
		_ = s.writeJudged(now) // then the next one opens them again
	}
}

// look opens a run's journal. It returns false for what may be different the
// next time though the file is the same: a run that is going on, or a file that
// cannot be read, whose status is empty.
func (s *Store) look(c *candidate) (j judged, lasts bool) {
	info, err := s.info(c.id)
	j = judged{
		size: c.journal.Size(), modified: c.journal.ModTime().UnixNano(),
		updated: info.UpdatedAt.UnixNano(), status: info.Status,
	}
	return j, err == nil && info.Status != StatusRunning
}
