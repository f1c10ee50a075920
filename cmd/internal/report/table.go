package report

import (
	"fmt"
	"io"
	"strings"
)

const (
	columnGap = 2
	// leastText is the minimum width of a column of wrapped text.
	leastText = 24
)

// Table formats rows with aligned columns. A nil header prints none. columns is
// the available width, 0 = any width. The text of the last column wraps; if the
// other columns leave too little room for it, each row becomes its first cell
// with the other cells indented below, numbers with the names of their columns.
// Nothing is truncated.
func Table(w io.Writer, columns int, header []string, rows [][]string) error {
	if header != nil {
		rows = append([][]string{header}, rows...)
	}
	if len(rows) == 0 {
		return nil
	}
	for i, row := range rows {
		cells := make([]string, len(row))
		for j, cell := range row {
			cells[j] = oneLine(cell)
		}
		rows[i] = cells
	}
	widths := columnWidths(rows)
	last := len(widths) - 1
	before := 0
	for _, width := range widths[:last] {
		before += width + columnGap
	}
	var b strings.Builder
	switch {
	case columns <= 0 || before+widths[last] <= columns:
		aligned(&b, rows, widths, before, 0)
	case columns-before >= leastText && widths[last] > leastText:
		aligned(&b, rows, widths, before, columns-before)
	default:
		if header != nil {
			label(rows[0], rows[1:])
			rows = rows[1:]
		}
		stacked(&b, rows, columns)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], textWidth(cell))
		}
	}
	return widths
}

// aligned writes rows as columns; text is the width of the last column, 0 =
// any.
func aligned(b *strings.Builder, rows [][]string, widths []int, before, text int) {
	last := len(widths) - 1
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row[:last] {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-textWidth(cell)+columnGap))
		}
		for i, part := range wrap(row[last], text) {
			if i > 0 {
				line.WriteString("\n" + strings.Repeat(" ", before))
			}
			line.WriteString(part)
		}
		fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
	}
}

// label adds the names of the columns to cells that are unclear without them:
// cells that begin with a digit or are a dash.
func label(header []string, rows [][]string) {
	for _, row := range rows {
		for i := 1; i < len(row); i++ {
			if cell := row[i]; cell == "-" || cell != "" && cell[0] >= '0' && cell[0] <= '9' {
				row[i] = strings.ToLower(header[i]) + " " + cell
			}
		}
	}
}

// stacked writes the first cell of each row with the others below.
func stacked(b *strings.Builder, rows [][]string, columns int) {
	const indent = "  "
	for _, row := range rows {
		fmt.Fprintln(b, row[0])
		var line string
		flush := func() {
			for _, part := range wrap(line, max(1, columns-len(indent))) {
				if part != "" {
					fmt.Fprintln(b, indent+part)
				}
			}
			line = ""
		}
		for _, cell := range row[1:] {
			if line != "" && textWidth(indent+line+indent+cell) > columns {
				flush()
			}
			if line != "" && cell != "" {
				line += indent
			}
			line += cell
		}
		flush()
	}
}

// wrap breaks a text between words into lines of at most width cells, 0 = one
// line. A word that is wider has its own line.
func wrap(text string, width int) []string {
	if width <= 0 || textWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Split(text, " ") {
		if line != "" && textWidth(line)+1+textWidth(word) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, strings.TrimRight(line, " "))
}
