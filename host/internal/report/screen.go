package report

import (
	"bytes"
	"io"
	"strconv"
)

// screen knows which lines it has drawn at the bottom of a terminal.
type screen struct {
	// widths are the cells of each line that is there now.
	widths  []int
	columns int
}

func (s *screen) empty() bool { return len(s.widths) == 0 }

// draw replaces the lines by others, with text that stays above them, in one
// write. columns is the terminal's width now.
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
	_, _ = w.Write(b.Bytes()) // nobody is there to tell
}

// rows is how many rows the drawn lines take; a terminal that has become
// narrower has broken them.
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
