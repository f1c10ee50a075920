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

// maxEventLine is the longest line that is read back.
const maxEventLine = 64 << 20

// EventLog is the file of a run's events, one JSON object with a "seq" on each
// line. It is for watching and looking back, not for resuming: lines are
// buffered and never forced to the disk. Its methods are safe for concurrent
// use. It has one owner, as a [Journal] has.
type EventLog struct {
	path string

	mu      sync.Mutex
	f       *os.File
	w       *bufio.Writer
	size    int64
	lastSeq uint64
	closed  bool
	waiting int         // events in w
	soon    *time.Timer // ends with a flush; nil without one
}

const (
	// MaxWaitingEvents is how many events FlushSoon lets wait.
	MaxWaitingEvents = 200
	// eventDelay is how long FlushSoon lets them wait.
	eventDelay = 20 * time.Millisecond
)

// OpenEvents opens the events of a run to append to, and makes the file where
// there is none. What a crash left behind the last whole line is cut off. A
// [*LockedError] where a live process owns the file.
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
	if err := checkStillThere(l.f, l.path); err != nil {
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

// lastWholeLine looks backwards from size for the last line that is an event,
// and returns its end and its seq, or 0 and 0.
func lastWholeLine(f io.ReaderAt, size int64) (end int64, seq uint64, err error) {
	const step = 64 << 10
	var tail []byte // the file from at on, as far as it may hold the line
	for at := size; ; {
		for {
			i := bytes.LastIndexByte(tail, '\n')
			if i < 0 {
				break
			}
			start := bytes.LastIndexByte(tail[:i], '\n') + 1
			if start == 0 && at > 0 {
				tail = tail[:i+1]
				break // the line begins further in front
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
// It may wait in memory until Flush. After an error of Append or Flush nothing
// more is written; the next OpenEvents repairs the file.
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

// Flush hands what waits to the kernel, so that readers see it.
func (l *EventLog) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flush()
}

// FlushSoon is Flush after a short time in which more events can come, so that
// many events at the same time need few writes. The next Append or Flush returns
// its error.
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

// Size is that of the log in bytes, what waits included.
func (l *EventLog) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// LastSeq is the seq of the last event, 0 where there is none.
func (l *EventLog) LastSeq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastSeq
}

// Path is where the log is.
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
	// After leaves out the events up to this seq.
	After uint64

	offset int64 // of what was not read yet
}

// Read calls fn with each event that was added since the last call, in order.
// line is valid during the call only. A last line that is not complete yet is
// left for the next call. Read returns an error of fn as it is, and a
// [*CorruptError] for a line that is not an event. A file that does not exist
// has no events.
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

// splitWholeLines splits at line ends and leaves out what follows the last.
func splitWholeLines(data []byte, _ bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}
