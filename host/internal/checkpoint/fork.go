package checkpoint

import (
	"fmt"
	"time"
)

// Fork makes a new run that begins with the records of another one, up to and
// including the one numbered at, from 1: the first holds the input. source is what [Store.Find]
// takes; it may be running. The new run's file is on disk, and owned by
// nobody, when its path is returned; [Store.Open] takes it up.
//
// Errors are those of [Read] and [Store.Create], and that source has no record
// of that number.
func (s *Store) Fork(source string, at uint64, newID string) (string, error) {
	if err := checkRunID(newID); err != nil {
		return "", err
	}
	from, err := s.Find(source)
	if err != nil {
		return "", err
	}
	c, err := Read(from)
	if err != nil {
		return "", err
	}
	if last := uint64(len(c.Records)); at < 1 || at > last {
		return "", fmt.Errorf("fork run %s at record %d: it has records 1 to %d", c.Header.RunID, at, last)
	}
	h := c.Header
	h.RunID, h.StartedAt = newID, time.Now().UTC()
	h.ParentRun, h.ParentSeq = c.Header.RunID, at
	path := s.journalPath(newID)
	w, err := createJournalFile(path, h, c.Records[:at])
	if err != nil {
		return "", fmt.Errorf("fork run %s: %w", c.Header.RunID, err)
	}
	if err := w.f.Close(); err != nil {
		return "", fmt.Errorf("fork run %s: %w", c.Header.RunID, err)
	}
	return path, nil
}
