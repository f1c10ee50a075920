package checkpoints

import (
	"bytes"
	"fmt"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/tokens"
)

// OpenEvents returns the stored events of a run after the given seq.
func (d *Dir) OpenEvents(run string, after int64) (*Events, error) {
	contents, err := d.Show(run)
	if err != nil {
		return nil, err
	}
	id := contents.Header.RunID
	return &Events{run: id, after: after, log: checkpoint.EventReader{Path: d.store.EventsPath(id), After: uint64(max(after, 0))}}, nil
}

// Events are the stored events of a run, which can still be running. It is not
// safe for concurrent use.
type Events struct {
	// Values includes the events of type values.
	Values bool

	run   string
	after int64
	log   checkpoint.EventReader
}

// isValues reports whether a line is an event of type values. No text of the workflow
// precedes the type, so the first match is the type.
func isValues(line []byte) bool {
	_, rest, _ := bytes.Cut(line, []byte(`,"event":"`))
	return bytes.HasPrefix(rest, []byte(`values"`))
}

// Next calls fn with each event that was stored since the last call, in order, as a
// line of JSON that is valid only during the call. Tokens, which are stored in groups,
// are passed one by one as they were streamed, with the ts of the first token of their
// group.
func (e *Events) Next(fn func(seq int64, line []byte) error) error {
	reader := tokens.Reader{After: e.after, Pass: fn}
	err := e.log.Read(func(seq uint64, line []byte) error {
		if !e.Values && isValues(line) {
			return nil
		}
		return reader.Line(int64(seq), line)
	})
	if err == nil {
		err = reader.Flush()
	}
	if err != nil {
		return fmt.Errorf("read the events of run %s: %w", e.run, err)
	}
	return nil
}
