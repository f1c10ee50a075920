package stream

import (
	"bufio"
	"bytes"
	"io"

	tea "github.com/the-edge-agent/tea/sdk"
)

// ErrTooLong is the error for a line or an event that exceeds its limit.
var ErrTooLong error = tea.Errorf(tea.ResourceExhausted, "the server sent a record that is larger than max_answer_bytes allows")

// Lines reads records of one line each, such as Ollama's JSON lines. Lines end in LF,
// CRLF or CR. Empty lines are skipped, and the last line need not be terminated.
type Lines struct{ in lineReader }

// NewLines reads lines of up to limit bytes from r. It buffers, so the caller must not
// read from r.
func NewLines(r io.Reader, limit int) *Lines { return &Lines{in: newLineReader(r, limit)} }

// Next returns the next record, which is valid until the next call. It returns io.EOF
// after the last one.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.in.next()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// lineReader splits a stream at LF, CRLF and CR. It does not wait for the byte after a
// CR, so it returns a line as soon as it ends.
type lineReader struct {
	r       *bufio.Reader
	limit   int
	line    []byte
	started bool
	afterCR bool
}

func newLineReader(r io.Reader, limit int) lineReader {
	return lineReader{r: bufio.NewReader(r), limit: limit}
}

// next returns a line without its end. An unterminated last line counts as a line;
// io.EOF follows.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		if _, err := l.r.Peek(1); err == io.EOF && len(l.line) > 0 {
			return l.withoutMark(), nil
		} else if err != nil {
			return nil, err
		}
		there, _ := l.r.Peek(l.r.Buffered()) // never reads, never fails
		if l.afterCR && there[0] == '\n' {
			there = there[1:]
			l.discard(1)
		}
		l.afterCR = false
		end := bytes.IndexAny(there, "\r\n")
		if end < 0 {
			end = len(there)
		}
		if len(l.line)+end > l.limit {
			return nil, ErrTooLong
		}
		l.line = append(l.line, there[:end]...)
		if end == len(there) {
			l.discard(end)
			continue
		}
		l.afterCR = there[end] == '\r'
		l.discard(end + 1)
		return l.withoutMark(), nil
	}
}

// discard drops bytes of the buffer, which cannot fail.
func (l *lineReader) discard(n int) { _, _ = l.r.Discard(n) }

// withoutMark drops a byte order mark in front of the first line.
func (l *lineReader) withoutMark() []byte {
	if l.started {
		return l.line
	}
	l.started = true
	return bytes.TrimPrefix(l.line, byteOrderMark)
}
