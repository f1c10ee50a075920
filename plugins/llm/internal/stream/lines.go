package stream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxRecord is the size up to which a line or an event is read.
const MaxRecord = 16 << 20

// ErrTooLong is what a reader returns for a line or an event beyond [MaxRecord].
var ErrTooLong = errors.New("the server sent a record of more than 16 MiB")

// Lines reads records of one line each, such as Ollama's JSON lines. Lines
// end in LF, CRLF or CR; empty ones are left out; the last one needs no end.
type Lines struct{ in lineReader }

// NewLines reads from r. It buffers, so r belongs to it from then on.
func NewLines(r io.Reader) *Lines { return &Lines{in: newLineReader(r)} }

// Next gives the next record; io.EOF after the last one. The bytes are valid
// until the next call.
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

// lineReader splits a stream at LF, CRLF and CR without waiting for the byte
// behind a CR, so that a line is there as soon as its end is.
type lineReader struct {
	r       *bufio.Reader
	line    []byte
	started bool
	afterCR bool
}

func newLineReader(r io.Reader) lineReader { return lineReader{r: bufio.NewReader(r)} }

// next gives a line without its end. At the end of the stream what is left
// counts as a line; then comes io.EOF.
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
		if len(l.line)+end > MaxRecord {
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

// discard drops what is in the buffer, which cannot fail.
func (l *lineReader) discard(n int) { _, _ = l.r.Discard(n) }

// withoutMark drops a byte order mark in front of the first line.
func (l *lineReader) withoutMark() []byte {
	if l.started {
		return l.line
	}
	l.started = true
	return bytes.TrimPrefix(l.line, byteOrderMark)
}
