package checkpoint

import (
	"fmt"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// Fork begins a new run with the records of another one, up to and including
// the one numbered at, and with the records of more behind them. source may be
// of a run that is going on. The file of the new run, which the caller owns, is
// whole and on disk with all of these records when Fork returns, whatever the
// durability.
//
// Errors are those of [Store.Create], a [*NoStartError], and that source has no
// record of that number.
func (s *Store) Fork(source *Contents, at uint64, newID string, d flow.Durability, more ...Record) (*Journal, *Contents, error) {
	if err := checkRunID(newID); err != nil {
		return nil, nil, err
	}
	if err := source.checkStart(s.journalPath(source.Header.RunID)); err != nil {
		return nil, nil, err
	}
	if last := uint64(len(source.Records)); at < 1 || at > last {
		return nil, nil, fmt.Errorf("fork run %s at record %d: it has records 1 to %d", source.Header.RunID, at, last)
	}
	h := source.Header
	h.RunID, h.StartedAt = newID, time.Now().UTC()
	h.ParentRun, h.ParentSeq = source.Header.RunID, at
	fork := &Contents{Header: h, Records: slices.Concat(source.Records[:at], more)}
	var frames []byte
	for i := range fork.Records {
		r := &fork.Records[i]
		if r.Seq = uint64(i) + 1; r.Time.IsZero() {
			r.Time = h.StartedAt
		}
		frames = appendFrame(frames, func(b []byte) []byte { return appendRecord(b, *r) })
	}
	path := s.journalPath(newID)
	w, err := createJournalFile(path, h, frames)
	if err != nil {
		return nil, nil, fmt.Errorf("fork run %s: %w", source.Header.RunID, err)
	}
	fork.Size = w.size
	return newJournal(h, path, d, w, uint64(len(fork.Records))), fork, nil
}
