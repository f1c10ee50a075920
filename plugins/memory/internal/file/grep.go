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
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

const (
	// maxLine is how much of a line is searched.
	maxLine = 1 << 20
	// longLine is how much is searched without asking whether the time is over.
	longLine = 16 << 10
	// maxShown is how much of a line is shown, around what was found.
	maxShown = 500
	// MaxContext bounds the lines before and after a match.
	MaxContext = 50
)

// Grep asks for lines.
type Grep struct {
	// Lines is what a line must contain.
	Lines *regexp.Regexp
	Query
	// Before and Behind are how many lines around a match are given.
	Before, Behind int
	// MaxMatches and MaxBytes bound the answer; MaxBytes counts its texts, of
	// which the last match's line may be beyond it.
	MaxMatches, MaxBytes int
}

// Match is a line that was found.
type Match struct {
	Path string
	// Line and Column count from 1; the column is in characters.
	Line, Column int
	// Text is the line without its end. A long one is cut, with … where.
	Text          string
	Before, After []string
}

// Matches is the answer of a Grep.
type Matches struct {
	Matches []Match
	// Searched is how many files were read.
	Searched int
	// Damaged are the paths of files whose content is not what was stored. They
	// have no matches.
	Damaged []string
	// Truncated says that there may be more: a bound was reached, the time was
	// over, or a line was longer than 1 MiB.
	Truncated bool

	bytes int
	more  bool // there was a match for which there was no room
}

// LinePattern is what a line must contain: a pattern of LIKE, where % is any
// text, _ one character and a backslash takes the next one as it is, or a
// regular expression (RE2, whose time is linear).
func LinePattern(pattern string, like, ignoreCase bool) (*regexp.Regexp, error) {
	if pattern == "" || len(pattern) > maxPattern || !utf8.ValidString(pattern) {
		return nil, tea.Errorf(tea.ValidationError, "a pattern is UTF-8 of 1 to %d bytes", maxPattern)
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
		return nil, tea.Errorf(tea.ValidationError, "the pattern %q is no regular expression (RE2: no back references, no look-around): %w", pattern, err)
	}
	return re, nil
}

func fromLike(pattern string) string {
	var b strings.Builder
	// What is found anyhow need not be said, and moves the column.
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

// Grep searches the lines of text files, in the order of the paths. When the
// context ends for lack of time, what was found so far is the answer.
func (f *Files) Grep(ctx context.Context, g Grep) (*Matches, error) {
	m := &Matches{}
	for file, err := range f.All(ctx, g.Query) {
		if err == nil && file.Text {
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

// outOfTime says that a search ended because its own time was over, not
// because its caller gave up.
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
	s := &lineSearch{g: g, path: file.Path, m: m, lines: lineReader{r: bufio.NewReaderSize(r, 64<<10)}}
	return s.run(ctx)
}

// lineSearch is one file on its way through Grep.
type lineSearch struct {
	g      Grep
	path   string
	m      *Matches
	lines  lineReader
	before []string // the lines before this one
	open   []int    // matches that wait for lines after them
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
			s.look(ctx, number, line)
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

func (s *lineSearch) look(ctx context.Context, number int, line []byte) {
	at := find(ctx, s.g.Lines, line)
	if at == nil {
		return
	}
	if len(s.m.Matches) >= s.g.MaxMatches || s.m.bytes >= s.g.MaxBytes {
		s.m.more = true
		return
	}
	found := Match{Path: s.path, Line: number, Column: utf8.RuneCount(line[:at[0]]) + 1, Text: shown(line, at[0], at[1]), After: []string{}}
	s.m.bytes += len(found.Text)
	first := len(s.before)
	for first > 0 && s.m.room(s.g, s.before[first-1]) {
		first--
	}
	found.Before = append([]string{}, s.before[first:]...)
	s.m.Matches = append(s.m.Matches, found)
	if s.g.Behind > 0 {
		s.open = append(s.open, len(s.m.Matches)-1)
	}
}

// room takes room for a line around a match, where there is any.
func (m *Matches) room(g Grep, text string) bool {
	if m.bytes+len(text) > g.MaxBytes {
		m.more = true
		return false
	}
	m.bytes += len(text)
	return true
}

// find is where a line has what is looked for. An expression may take a
// microsecond for a byte: in a long line it must be possible to stop it.
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

// untilDone is a text that ends when the context does.
type untilDone struct {
	ctx  context.Context //nolint:containedctx // it lives for one line
	r    *bytes.Reader
	read int
}

// ReadRune gives the next character.
func (u *untilDone) ReadRune() (r rune, size int, err error) {
	if u.read++; u.read%1024 == 0 && u.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return u.r.ReadRune()
}

// continueOpen gives a line to the matches before it.
func (s *lineSearch) continueOpen(line []byte) {
	if len(s.open) == 0 {
		return
	}
	text := shown(line, 0, 0)
	for _, i := range s.open {
		if !s.m.room(s.g, text) {
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

// shown is a line, or as much of a long one around what was found.
func shown(line []byte, from, to int) string {
	if len(line) <= maxShown {
		return string(line)
	}
	// What was found is shown from a fifth of the way on.
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

// next gives a line without its end, at most maxLine of it. It is valid until
// the next call.
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
