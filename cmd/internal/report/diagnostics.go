package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Diagnostics prints diagnostics, each with its source line and hint, and their
// number.
func (r *Report) Diagnostics(list diag.List) {
	var b strings.Builder
	files := sources{}
	errors, warnings := 0, 0
	for _, d := range list {
		if d.Severity == diag.Error {
			errors++
		} else {
			warnings++
			if r.o.Quiet {
				continue
			}
		}
		r.diagnostic(&b, files, d)
	}
	if count := countWords(errors, warnings); count != "" && len(list) > 1 && !(r.o.Quiet && errors == 0) {
		b.WriteString(count + "\n")
	}
	r.print(b.String())
}

func (r *Report) diagnostic(b *strings.Builder, files sources, d diag.Diagnostic) {
	if pos := d.Pos.String(); pos != "" {
		b.WriteString(r.style.paint(bold, Printable(pos)+": "))
	}
	color := yellow
	if d.Severity == diag.Error {
		color = red
	}
	b.WriteString(r.style.paint(color, fmt.Sprintf("%s %s", d.Severity, d.Code)) + ": " + Printable(d.Message))
	if d.Path != "" {
		b.WriteString(r.style.paint(dim, " ("+d.Path+")"))
	}
	b.WriteString("\n" + r.excerpt(files, d.Pos))
	if d.Hint != "" {
		b.WriteString("  " + r.style.paint(green, "hint:") + " " + Printable(d.Hint) + "\n")
	}
}

// countWords returns a text such as "2 errors, 1 warning".
func countWords(errors, warnings int) string {
	var parts []string
	add := func(n int, word string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+word)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, word))
		}
	}
	add(errors, "error")
	add(warnings, "warning")
	return strings.Join(parts, ", ")
}

const (
	// mostSource bounds the part of a file that is read for an excerpt.
	mostSource = 4 << 20
	// excerptWidth is the maximum number of characters shown of a line.
	excerptWidth = 110
)

// sources reads and caches files for excerpts.
type sources map[string][][]byte

// line returns a line of a file, counted from 1, or nil.
func (s sources) line(file string, n int) []byte {
	lines, known := s[file]
	if !known {
		lines = readLines(file)
		s[file] = lines
	}
	if n < 1 || n > len(lines) {
		return nil
	}
	return lines[n-1]
}

// readLines returns nil if the file cannot be read: a diagnostic about a
// command-line argument has no file.
func readLines(file string) [][]byte {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostSource))
	if err != nil {
		return nil
	}
	return bytes.Split(data, []byte("\n"))
}

// excerpt returns the line of a position with carets below, under the whole
// line if the column is unknown; "" if the line cannot be read, may not be shown or contains a
// secret. It fits the terminal.
func (r *Report) excerpt(files sources, pos diag.Pos) string {
	if r.o.Quotes != nil && !r.o.Quotes(pos.File) {
		return ""
	}
	raw := files.line(pos.File, pos.Line)
	if raw == nil {
		return ""
	}
	text := strings.TrimRight(string(raw), "\r")
	if r.o.Mask != nil && r.o.Mask(text) != text {
		return ""
	}
	runes := []rune(Printable(text))
	at := min(pos.Column-1, len(runes))
	end := len(runes)
	if pos.Column < 1 {
		at = end - len([]rune(strings.TrimLeft(string(runes), " \t")))
	} else {
		end = wordEnd(runes, at)
	}
	number := fmt.Sprint(pos.Line)
	width := excerptWidth
	if r.o.Size != nil {
		columns, _ := r.o.Size()
		width = max(20, min(width, columns-len(number)-6))
	}
	from := 0
	if end > width {
		from = max(0, at-width/2)
	}
	to := min(len(runes), from+width)
	shown := expandTabs(runes[from:to])
	indent := textWidth(expandTabs(runes[from:at]))
	marks := max(1, textWidth(expandTabs(runes[at:min(end, to)])))
	gutter := strings.Repeat(" ", len(number))
	return fmt.Sprintf("  %s %s\n  %s %s\n",
		r.style.paint(blue, number+" |"), strings.TrimRight(shown, " "),
		r.style.paint(blue, gutter+" |"), strings.Repeat(" ", indent)+r.style.paint(red, "^"+strings.Repeat("~", marks-1)))
}

func expandTabs(runes []rune) string {
	return strings.ReplaceAll(string(runes), "\t", "    ")
}

// wordEnd returns the end of the marked word.
func wordEnd(runes []rune, at int) int {
	end := at
	for end < len(runes) && !strings.ContainsRune(" \t,:;()[]{}\"'#", runes[end]) {
		end++
	}
	return max(end, min(at+1, len(runes)))
}
