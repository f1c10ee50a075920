package transfer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// errNotUTF8 is the error of a text in another encoding.
var errNotUTF8 = errors.New("the text is not valid UTF-8; save the file as UTF-8")

// decoded reads a text: it skips a byte order mark, and converts UTF-16 that begins
// with one.
func decoded(r io.Reader) io.Reader {
	b := bufio.NewReaderSize(r, 1<<16)
	start, _ := b.Peek(3) // a short file has fewer bytes
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		_, _ = b.Discard(3)
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(b)
	}
	return b
}

// withLineFeeds replaces the line ends of a text that has only carriage returns, as some
// programs for the Mac write it.
func withLineFeeds(r io.Reader) io.Reader {
	b := bufio.NewReaderSize(r, 1<<16)
	start, _ := b.Peek(1 << 16) // a short file has fewer bytes
	if bytes.IndexByte(start, '\r') < 0 || bytes.IndexByte(start, '\n') >= 0 {
		return b
	}
	return carriageReturns{b}
}

// carriageReturns replaces carriage returns with line feeds.
type carriageReturns struct{ r io.Reader }

func (c carriageReturns) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for i := range p[:n] {
		if p[i] == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// charsets are the encodings of XML files other than UTF-8 and UTF-16.
var charsets = []*charmap.Charmap{
	charmap.ISO8859_1, charmap.ISO8859_2, charmap.ISO8859_9, charmap.ISO8859_15, charmap.Windows1250, charmap.Windows1251, charmap.Windows1252, charmap.Windows1254,
}

// charset converts a text from the encoding that an XML file declares.
func charset(name string, r io.Reader) (io.Reader, error) {
	short := encodingName(name)
	switch short {
	case "utf8", "usascii", "ascii", "utf16": // decoded has converted UTF-16
		return r, nil
	case "latin1":
		short = "iso88591"
	}
	for _, c := range charsets {
		if encodingName(c.String()) == short {
			return c.NewDecoder().Reader(r), nil
		}
	}
	return nil, fmt.Errorf("the encoding %q is not supported; save the file as UTF-8", name)
}

// encodingName normalizes the name of an encoding: lower case, letters and digits
// only.
func encodingName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// spool stores data, in a temporary file if it is large.
type spool struct {
	buffer bytes.Buffer
	file   *os.File
}

// spoolMemory is the size above which a spool uses a file.
const spoolMemory = 4 << 20

func (s *spool) Write(text []byte) (int, error) {
	if s.buffer.Len()+len(text) > spoolMemory {
		if err := s.flush(); err != nil {
			return 0, err
		}
	}
	return s.buffer.Write(text)
}

func (s *spool) flush() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "tea-graph-*"); err != nil {
			return err
		}
	}
	_, err = s.buffer.WriteTo(s.file)
	return err
}

// copyTo writes all data to w.
func (s *spool) copyTo(w io.Writer) error {
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(w, s.file); err != nil {
			return err
		}
	}
	_, err := s.buffer.WriteTo(w)
	return err
}

func (s *spool) discard() {
	if s.file != nil {
		_ = s.file.Close() // no longer needed
		_ = os.Remove(s.file.Name())
		s.file = nil
	}
}
