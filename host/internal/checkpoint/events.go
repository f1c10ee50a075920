package checkpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// maxEventLine is the maximum length of a line that is read.
const maxEventLine = 64 << 20

// EventLog is the file of a run's events, one JSON object with a "seq" on each
// line. It is for observing a run, not for resuming it: lines are buffered and
// not synced to disk. Its methods are safe for concurrent use. It has one owner,
// like a [Journal].
type EventLog struct {
	path string

	mu      sync.Mutex
	f       *os.File
	w       *bufio.Writer
	size    int64
	lastSeq uint64
	closed  bool
	waiting int         // events in w
	soon    *time.Timer // ends with a flush; nil if there is none
}

const (
	// MaxWaitingEvents is the maximum number of events that FlushSoon buffers.
	MaxWaitingEvents = 200
	// eventDelay is the maximum time for which FlushSoon buffers them.
	eventDelay = 20 * time.Millisecond
)

// OpenEvents opens the events of a run for appending, and creates the file if
// necessary. It cuts off an incomplete line that a crash left at the end. The
// error is a [*InUseError] if a live process owns the file.
func (s *Store) OpenEvents(runID string) (*EventLog, error) {
	if err := checkRunID(runID); err != nil {
		return nil, err
	}
	path := s.EventsPath(runID)
	f, err := openFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	l := &EventLog{path: path, f: f, w: bufio.NewWriterSize(f, 64<<10)}
	if err := l.recover(); err != nil {
		_ = releaseFile(f)
		return nil, fmt.Errorf("open events: %w", err)
	}
	return l, nil
}

func (l *EventLog) recover() error {
	if err := lockFile(l.f, l.path); err != nil {
		return err
	}
	if err := checkNotRemoved(l.f, l.path); err != nil {
		return err
	}
	stat, err := l.f.Stat()
	if err != nil {
		return err
	}
	if l.size, l.lastSeq, err = lastWholeLine(l.f, stat.Size()); err != nil {
		return err
	}
	if l.size < stat.Size() {
		return l.f.Truncate(l.size)
	}
	return nil
}

// lastWholeLine searches backwards from size for the last line that is an event,
// and returns its end and its seq, or 0 and 0.
func lastWholeLine(f io.ReaderAt, size int64) (end int64, seq uint64, err error) {
	const step = 64 << 10
	var tail []byte // the file from offset at, as far as it can contain the line
	for at := size; ; {
		for {
			i := bytes.LastIndexByte(tail, '\n')
			if i < 0 {
				break
			}
			start := bytes.LastIndexByte(tail[:i], '\n') + 1
			if start == 0 && at > 0 {
				tail = tail[:i+1]
				break // the line begins earlier
			}
			if seq, ok := eventSeq(tail[start:i]); ok {
				return at + int64(i) + 1, seq, nil
			}
			tail = tail[:start]
		}
		if at == 0 {
			return 0, 0, nil
		}
		n := min(at, step)
		if bytes.IndexByte(tail, '\n') < 0 {
			tail = nil // no line ends in it
		}
		if len(tail) > maxEventLine {
			return 0, 0, fmt.Errorf("a line is longer than %d bytes", maxEventLine)
		}
		chunk := make([]byte, n, n+int64(len(tail)))
		at -= n
		if _, err := f.ReadAt(chunk, at); err != nil {
			return 0, 0, err
		}
		tail = append(chunk, tail...)
	}
}

func eventSeq(line []byte) (uint64, bool) {
	var e struct {
		Seq *uint64 `json:"seq"`
	}
	if json.Unmarshal(line, &e) != nil || e.Seq == nil {
		return 0, false
	}
	return *e.Seq, true
}

// Append adds one event, a JSON object without line breaks whose "seq" is seq.
// It can be buffered until Flush. After an error of Append or Flush nothing more
// is written; the next OpenEvents repairs the file.
func (l *EventLog) Append(seq uint64, line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("append to events %s: %w", l.path, os.ErrClosed)
	}
	if _, err := l.w.Write(line); err != nil {
		return fmt.Errorf("append to events: %w", err)
	}
	if err := l.w.WriteByte('\n'); err != nil {
		return fmt.Errorf("append to events: %w", err)
	}
	l.size += int64(len(line)) + 1
	l.lastSeq = seq
	l.waiting++
	return nil
}

// Flush writes the buffered events to the file, so that readers see them.
func (l *EventLog) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flush()
}

// FlushSoon flushes after a short delay, so that a burst of events needs few
// writes. The next Append or Flush returns its error.
func (l *EventLog) FlushSoon() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.waiting >= MaxWaitingEvents:
		return l.flush()
	case l.waiting > 0 && l.soon == nil && !l.closed:
		l.soon = time.AfterFunc(eventDelay, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.soon = nil; !l.closed {
				_ = l.flush() // w keeps the error
			}
		})
	}
	return nil
}

func (l *EventLog) flush() error {
	l.waiting = 0
	if err := l.w.Flush(); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// Size returns the size of the log in bytes, including buffered events.
func (l *EventLog) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// LastSeq returns the seq of the last event; 0 if there is none.
func (l *EventLog) LastSeq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastSeq
}

// Path returns the path of the log.
func (l *EventLog) Path() string { return l.path }

// Close flushes and releases the file. Closing again does nothing.
func (l *EventLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.soon != nil {
		l.soon.Stop()
	}
	return errors.Join(l.flush(), releaseFile(l.f))
}

// EventReader reads a log of events that can still grow. It is not safe for
// concurrent use.
type EventReader struct {
	Path string
	// After excludes the events up to this seq.
	After uint64

	offset int64 // of the unread part
}

// Read calls fn with each event that was added since the last call, in order.
// line is valid only during the call. An incomplete last line is left for the
// next call. Read returns an error of fn unchanged, and a [*CorruptError] for a
// line that is not an event. A file that does not exist has no events.
func (r *EventReader) Read(fn func(seq uint64, line []byte) error) error {
	f, err := openFile(r.Path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(r.offset, io.SeekStart); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 64<<10), maxEventLine)
	lines.Split(splitWholeLines)
	for lines.Scan() {
		line := lines.Bytes()
		seq, ok := eventSeq(line)
		if !ok {
			return &CorruptError{Path: r.Path, Offset: r.offset, Reason: "a line is not an event"}
		}
		r.offset += int64(len(line)) + 1
		if seq <= r.After {
			continue
		}
		if err := fn(seq, line); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read events %s: %w", r.Path, err)
	}
	return nil
}

// splitWholeLines splits at line ends and omits an incomplete last line.
func splitWholeLines(data []byte, _ bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}
