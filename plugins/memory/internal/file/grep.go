package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// maxLine bounds the part of a line that is searched.
	maxLine = 1 << 20
	// longLine is the length from which a search in a line can be canceled.
	longLine = 16 << 10
	// maxShown bounds the part of a line that is returned, around the match.
	maxShown = 500
	// MaxContext bounds the lines before and after a match.
	MaxContext = 50
)

// Grep is a search for lines.
type Grep struct {
	// Lines must match a part of a line.
	Lines *regexp.Regexp
	Query
	// Before and Behind are the numbers of context lines.
	Before, Behind int
	// MaxMatches and MaxBytes bound the result. MaxBytes counts its texts; the
	// line of the last match can exceed it.
	MaxMatches, MaxBytes int
}

// Match is a matching line.
type Match struct {
	// Source is the source of the file, or the source passed to Text.
	Source string
	Path   string
	// Line and Column count from 1; the column is in characters.
	Line, Column int
	// Text is the line without its newline. A long line is cut, marked by ….
	Text          string
	Before, After []string
}

// Matches is the result of a Grep.
type Matches struct {
	Matches []Match
	// Searched is the number of files that were read.
	Searched int
	// Damaged are the paths of files whose content is damaged. They have no
	// matches.
	Damaged []string
	// Truncated reports whether a bound or the deadline ended the search, or that a
	// line was longer than 1 MiB.
	Truncated bool

	bytes int
	more  bool // a bound was reached
}

// LinePattern compiles a pattern: a LIKE pattern of SQL, where % matches any
// text, _ one character and a backslash escapes the next one, or a regular
// expression (RE2, whose time is linear). The error is a validation_error.
func LinePattern(pattern string, like, ignoreCase bool) (*regexp.Regexp, error) {
	if pattern == "" || len(pattern) > maxPattern || !utf8.ValidString(pattern) {
		return nil, tea.Errorf(tea.ValidationError, "a pattern must be UTF-8 of 1 to %d bytes", maxPattern)
	}
	expression := pattern
	if like {
		expression = fromLike(pattern)
	}
	if ignoreCase {
		expression = "(?i)" + expression
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the pattern %q is not a valid regular expression (RE2: no back references, no look-around): %w", pattern, err)
	}
	return re, nil
}

func fromLike(pattern string) string {
	var b strings.Builder
	// A leading % would change the column of the match.
	pattern = strings.TrimLeft(pattern, "%")
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped || (r != '%' && r != '_' && r != '\\'):
			b.WriteString(regexp.QuoteMeta(string(r)))
			escaped = false
		case r == '%':
			b.WriteString(".*?")
		case r == '_':
			b.WriteByte('.')
		default:
			escaped = true
		}
	}
	if escaped {
		b.WriteString(`\\`)
	}
	return b.String()
}

// Grep searches the lines of text files, in the order of their paths. At the
// context's deadline it returns the results so far, without an error.
func (f *Files) Grep(ctx context.Context, g Grep) (*Matches, error) {
	m := &Matches{}
	for file, err := range f.All(ctx, g.Query) {
		switch {
		case err != nil:
		case file.Damaged:
			m.Damaged = append(m.Damaged, file.Path)
		case file.Text:
			err = f.grepFile(ctx, g, file, m)
		}
		if outOfTime(ctx, err) {
			m.Truncated = true
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		if m.more {
			m.Truncated = true
			return m, nil
		}
	}
	return m, nil
}

// outOfTime reports whether a search ended at its deadline, not by cancellation.
func outOfTime(ctx context.Context, err error) bool {
	return err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

func (f *Files) grepFile(ctx context.Context, g Grep, file File, m *Matches) error {
	before := *m
	err := f.grepLines(ctx, g, file, m)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // removed meanwhile
	case errors.Is(err, content.ErrDamaged):
		*m = before
		m.Damaged = append(m.Damaged, file.Path)
		return nil
	}
	return err
}

func (f *Files) grepLines(ctx context.Context, g Grep, file File, m *Matches) error {
	r, err := f.listed(ctx, file)
	if err != nil {
		return err
	}
	defer r.Close()
	m.Searched++
	return g.text(ctx, file.Source(), file.Path, r, m)
}

// Text searches the lines of a text that is not in a file, and adds its matches to m.
// It reports whether there is room for more.
func (g Grep) Text(ctx context.Context, source, path, text string, m *Matches) (more bool, err error) {
	if err = g.text(ctx, source, path, strings.NewReader(text), m); outOfTime(ctx, err) {
		m.Truncated = true
		return false, nil
	}
	m.Truncated = m.Truncated || m.more
	return !m.more, err
}

func (g Grep) text(ctx context.Context, source, path string, r io.Reader, m *Matches) error {
	s := &lineSearch{g: g, source: source, path: path, m: m, lines: lineReader{r: bufio.NewReaderSize(r, 64<<10)}}
	return s.run(ctx)
}

// lineSearch is the search in one file.
type lineSearch struct {
	g      Grep
	source string
	path   string
	m      *Matches
	lines  lineReader
	before []string // the lines before the current one
	open   []int    // matches with fewer than Behind lines after them so far
}

func (s *lineSearch) run(ctx context.Context) error {
	for number := 1; ; number++ {
		line, err := s.lines.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", s.path, err)
		}
		s.continueOpen(line)
		if !s.m.more {
			s.searchLine(ctx, number, line)
		}
		if s.m.more && len(s.open) == 0 {
			break
		}
		s.remember(line)
	}
	if s.lines.cut {
		s.m.Truncated = true
	}
	return nil
}

func (s *lineSearch) searchLine(ctx context.Context, number int, line []byte) {
	at := find(ctx, s.g.Lines, line)
	if at == nil {
		return
	}
	if len(s.m.Matches) >= s.g.MaxMatches || s.m.bytes >= s.g.MaxBytes {
		s.m.more = true
		return
	}
	found := Match{Source: s.source, Path: s.path, Line: number, Column: utf8.RuneCount(line[:at[0]]) + 1, Text: shown(line, at[0], at[1]), After: []string{}}
	s.m.bytes += len(found.Text)
	first := len(s.before)
	for first > 0 && s.m.reserve(s.g, s.before[first-1]) {
		first--
	}
	found.Before = append([]string{}, s.before[first:]...)
	s.m.Matches = append(s.m.Matches, found)
	if s.g.Behind > 0 {
		s.open = append(s.open, len(s.m.Matches)-1)
	}
}

// reserve reserves space in the result for a line of context and reports whether
// there was enough.
func (m *Matches) reserve(g Grep, text string) bool {
	if m.bytes+len(text) > g.MaxBytes {
		m.more = true
		return false
	}
	m.bytes += len(text)
	return true
}

// find returns the position of the match in a line. An expression can take a
// microsecond per byte, so in a long line the search must be cancelable.
func find(ctx context.Context, re *regexp.Regexp, line []byte) []int {
	if len(line) <= longLine {
		return re.FindIndex(line)
	}
	at := re.FindReaderIndex(&untilDone{ctx: ctx, r: bytes.NewReader(line)})
	if ctx.Err() != nil {
		return nil
	}
	return at
}

// untilDone reads a text until the context ends.
type untilDone struct {
	ctx  context.Context //nolint:containedctx // it lives for one line
	r    *bytes.Reader
	read int
}

func (u *untilDone) ReadRune() (r rune, size int, err error) {
	if u.read++; u.read%1024 == 0 && u.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return u.r.ReadRune()
}

// continueOpen adds a line to the preceding matches.
func (s *lineSearch) continueOpen(line []byte) {
	if len(s.open) == 0 {
		return
	}
	text := shown(line, 0, 0)
	for _, i := range s.open {
		if !s.m.reserve(s.g, text) {
			s.open = nil
			return
		}
		s.m.Matches[i].After = append(s.m.Matches[i].After, text)
	}
	for len(s.open) > 0 && len(s.m.Matches[s.open[0]].After) == s.g.Behind {
		s.open = s.open[1:]
	}
}

func (s *lineSearch) remember(line []byte) {
	if s.g.Before == 0 {
		return
	}
	if len(s.before) == s.g.Before {
		s.before = s.before[1:]
	}
	s.before = append(s.before, shown(line, 0, 0))
}

// shown returns a line, or for a long line the part around the match.
func shown(line []byte, from, to int) string {
	if len(line) <= maxShown {
		return string(line)
	}
	// Show a fifth of the part before the match.
	start := max(0, min(from-maxShown/5, len(line)-maxShown))
	if to-from > maxShown*4/5 {
		start = from
	}
	end := min(start+maxShown, len(line))
	for start > 0 && !utf8.RuneStart(line[start]) {
		start--
	}
	for end < len(line) && !utf8.RuneStart(line[end]) {
		end--
	}
	text := string(line[start:end])
	if start > 0 {
		text = "…" + text
	}
	if end < len(line) {
		text += "…"
	}
	return text
}

// lineReader reads lines of bounded length.
type lineReader struct {
	r   *bufio.Reader
	buf []byte
	cut bool // a line was longer than maxLine
}

// next returns a line without its newline, cut at maxLine. It is valid until the
// next call.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if room := maxLine - len(l.buf); len(part) > room {
			for room > 0 && !utf8.RuneStart(part[room]) {
				room--
			}
			part, l.cut = part[:room], true
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(l.buf) > 0, err == nil:
			return bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r")), nil
		}
		return nil, err
	}
}
