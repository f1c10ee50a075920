package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// regionLine is a line at the bottom of the terminal with its width in cells.
type regionLine struct {
	text  string
	width int
}

// region returns the running lines, as many as fit.
func (r *Report) region(columns, rows int) []regionLine {
	if r.lines.open.Len() == 0 {
		return nil
	}
	room := max(1, rows-2)
	shown := r.lines.pick(room)
	var out []regionLine
	for _, l := range shown {
		text := r.lineText(l, columns)
		out = append(out, regionLine{text, lineWidth(r, l, columns)})
		if l.text != "" && len(out) < room {
			indent := strings.Repeat("  ", l.depth) + "  "
			said := truncate(indent+tail(oneLine(l.text), max(1, columns-1-len(indent))), columns-1, "")
			out = append(out, regionLine{r.style.paint(dim, said), textWidth(said)})
		}
	}
	if missing := r.lines.open.Len() - len(shown); missing > 0 {
		text := truncate(fmt.Sprintf("  %s %d more", r.style.more, missing), columns-1, "")
		out = append(out, regionLine{r.style.paint(dim, text), textWidth(text)})
	}
	return out
}

// pick chooses the lines to show, preferring lines that have not ended.
func (ls *lines) pick(room int) []*line {
	ended := ls.finished
	if ls.open.Len() > room {
		room = max(1, room-1)
		ended = max(0, room-(ls.open.Len()-ls.finished))
	}
	out := make([]*line, 0, room)
	for _, l := range ls.open.Below("") {
		if len(out) == room {
			break
		}
		if l.state.ended() {
			if ended == 0 {
				continue
			}
			ended--
		}
		out = append(out, l)
	}
	return out
}

// lineText returns a node's line for a terminal.
func (r *Report) lineText(l *line, columns int) string {
	glyph, color := r.glyph(l)
	head, details := r.parts(l, columns, glyph)
	indent := strings.Repeat("  ", l.depth)
	rest := strings.TrimPrefix(head, indent+glyph)
	return indent + r.style.paint(color, glyph) + rest + r.style.paint(dim, details)
}

func lineWidth(r *Report, l *line, columns int) int {
	glyph, _ := r.glyph(l)
	head, details := r.parts(l, columns, glyph)
	return textWidth(head + details)
}

// parts returns the two halves of a line, cut to the terminal's width.
func (r *Report) parts(l *line, columns int, glyph string) (head, details string) {
	width := max(8, columns-1)
	head = strings.Repeat("  ", l.depth) + glyph + " " + oneLine(l.label())
	if textWidth(head) >= width {
		return truncate(head, width, r.style.more), ""
	}
	if about := r.details(l); about != "" {
		details = truncate("  "+about, width-textWidth(head), r.style.more)
	}
	return head, details
}

func (r *Report) glyph(l *line) (glyph, color string) {
	switch l.state {
	case done:
		return r.style.done, green
	case skipped:
		return r.style.skipped, dim
	case failed:
		return r.style.failed, red
	case waiting:
		return r.style.waiting, yellow
	}
	frames := r.style.spinner
	return frames[int(r.o.Now().UnixMilli()/redrawEvery.Milliseconds())%len(frames)], blue
}

// details returns a line's times and counts.
func (r *Report) details(l *line) string {
	var parts []string
	note := l.note
	switch l.state {
	case running:
		now := r.o.Now()
		parts = append(parts, r.style.brief(now.Sub(l.started).Truncate(redrawEvery)))
		if now.Before(l.attempted) {
			parts, note = append(parts, retrying(l.uses, l.attempted.Sub(now), note)), ""
		} else if l.slow {
			parts = append(parts, l.wait())
		}
	case skipped:
		parts = append(parts, "skipped")
	case done, failed:
		parts = append(parts, r.style.brief(l.elapsed))
	}
	if l.items > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d", l.ended, l.items))
	}
	if l.nodes > 1 {
		parts = append(parts, count(int64(l.nodes), "node", "nodes"))
	}
	if l.passes > 0 {
		parts = append(parts, count(l.passes, "pass", "passes"))
	}
	if l.attempts > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", l.attempts))
	}
	if l.tokens > 0 {
		parts = append(parts, count(l.tokens, "token", "tokens"))
	}
	if note != "" {
		parts = append(parts, oneLine(note))
	}
	return strings.Join(parts, r.style.dot)
}

// plainLine returns a line for a log: the whole path, no colours.
func (r *Report) plainLine(l *line) string {
	verb := map[state]string{done: "done", skipped: "skipped", failed: "failed", waiting: "waiting"}[l.state]
	var parts []string
	if l.state == done || l.state == failed {
		parts = append(parts, r.style.brief(l.elapsed))
	}
	if l.folded {
		parts = append(parts, l.progress())
	}
	if l.passes > 0 {
		parts = append(parts, count(l.passes, "pass", "passes"))
	}
	if l.attempts > 1 {
		parts = append(parts, fmt.Sprintf("%d attempts", l.attempts))
	}
	if l.tokens > 0 {
		parts = append(parts, count(l.tokens, "token", "tokens"))
	}
	out := oneLine(string(l.path))
	if l.item != nil {
		out += " " + oneLine(l.item.String())
	}
	out += ": " + verb
	if len(parts) > 0 {
		out += " (" + strings.Join(parts, ", ") + ")"
	}
	if l.note != "" {
		out += ": " + oneLine(l.note)
	}
	return out
}

// progress returns how many of a map's items have ended.
func (l *line) progress() string { return fmt.Sprintf("%d of %d items", l.ended, l.items) }

func count(n int64, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// brief is [Brief] with the characters of the style.
func (s style) brief(d time.Duration) string { return strings.Replace(Brief(d), "µ", s.micro, 1) }

// Brief formats a duration with about three digits.
func Brief(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// screen records the lines that it has drawn at the bottom of a terminal.
type screen struct {
	// widths has the width in cells of each line that is drawn.
	widths  []int
	columns int
}

func (s *screen) empty() bool { return len(s.widths) == 0 }

// draw replaces the lines, and writes text above them that stays, in one write.
// columns is the current width of the terminal.
func (s *screen) draw(w io.Writer, above []byte, region []regionLine, columns int) {
	var b bytes.Buffer
	if rows := s.rows(columns); rows > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(rows) + "A\r\x1b[J")
	}
	b.Write(above)
	s.widths, s.columns = s.widths[:0], columns
	for _, line := range region {
		b.WriteString(line.text)
		b.WriteByte('\n')
		s.widths = append(s.widths, line.width)
	}
	_, _ = w.Write(b.Bytes()) // there is nowhere to report the error
}

// rows returns the number of rows that the drawn lines take; a terminal that
// became narrower has wrapped them.
func (s *screen) rows(columns int) int {
	rows := len(s.widths)
	if columns <= 0 || columns >= s.columns {
		return rows
	}
	for _, width := range s.widths {
		rows += max(0, width-1) / columns
	}
	return rows
}

// style has the glyphs and colours of the output.
type style struct {
	color bool
	glyphs
}

// glyphs are the symbols at the start of lines.
type glyphs struct {
	done, failed, skipped, waiting, retry string
	spinner                               []string
	dot, more, micro                      string
}

var unicodeGlyphs = glyphs{
	done: "✓", failed: "✗", skipped: "-", waiting: "?", retry: "↻",
	spinner: []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"},
	dot:     " · ", more: "…", micro: "µ",
}

var asciiGlyphs = glyphs{
	done: "+", failed: "x", skipped: "-", waiting: "?", retry: "~",
	spinner: []string{"|", "/", "-", "\\"},
	dot:     ", ", more: "...", micro: "u",
}

// The colours, as the numbers of SGR sequences.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
)

func newStyle(color, ascii bool) style {
	s := style{color: color, glyphs: unicodeGlyphs}
	if ascii {
		s.glyphs = asciiGlyphs
	}
	return s
}

func (s style) paint(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
