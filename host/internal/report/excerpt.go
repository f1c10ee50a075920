package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/the-edge-agent/tea/sdk/diag"
)

const (
	// mostSource is how much of a file is read for an excerpt.
	mostSource = 4 << 20
	// excerptWidth is how many characters of a line are shown.
	excerptWidth = 110
)

// sources reads files for excerpts, each once.
type sources map[string][][]byte

// line gives a line of a file from 1; nil where there is none.
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

// readLines gives nothing where the file cannot be read: a diagnostic about
// an argument of the command line has no file behind it.
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

// excerpt shows the line a position is about with a caret below, the whole line
// where the column is not known; "" where the line cannot be read.
func (s sources) excerpt(pos diag.Pos, st style) string {
	raw := s.line(pos.File, pos.Line)
	if raw == nil {
		return ""
	}
	runes := []rune(Printable(strings.TrimRight(string(raw), "\r")))
	at := min(pos.Column-1, len(runes))
	end := len(runes)
	if pos.Column < 1 {
		at = end - len([]rune(strings.TrimLeft(string(runes), " \t")))
	} else {
		end = wordEnd(runes, at)
	}
	from := 0
	if end > excerptWidth {
		from = max(0, at-excerptWidth/2)
	}
	to := min(len(runes), from+excerptWidth)
	shown := expandTabs(runes[from:to])
	indent := textWidth(expandTabs(runes[from:at]))
	marks := max(1, textWidth(expandTabs(runes[at:min(end, to)])))
	number := fmt.Sprint(pos.Line)
	gutter := strings.Repeat(" ", len(number))
	return fmt.Sprintf("  %s %s\n  %s %s\n",
		st.paint(blue, number+" |"), strings.TrimRight(shown, " "),
		st.paint(blue, gutter+" |"), strings.Repeat(" ", indent)+st.paint(red, "^"+strings.Repeat("~", marks-1)))
}

func expandTabs(runes []rune) string {
	return strings.ReplaceAll(string(runes), "\t", "    ")
}

// wordEnd finds the end of the word that is marked.
func wordEnd(runes []rune, at int) int {
	end := at
	for end < len(runes) && !strings.ContainsRune(" \t,:;()[]{}\"'#", runes[end]) {
		end++
	}
	return max(end, min(at+1, len(runes)))
}
