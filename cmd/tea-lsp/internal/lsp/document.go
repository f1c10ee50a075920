package lsp

import (
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// document is a text with positions. It is immutable.
type document struct {
	uri, path string
	version   int
	text      string
	// lines are the offsets at which the lines begin.
	lines []int
}

func newDocument(uri string, version int, text string) *document {
	d := &document{uri: uri, path: pathOf(uri), version: version, text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' || text[i] == '\r' && !strings.HasPrefix(text[i+1:], "\n") {
			d.lines = append(d.lines, i+1)
		}
	}
	return d
}

// isWorkflow recognises a workflow among other YAML files by keys that only workflows
// have at the top.
var isWorkflow = regexp.MustCompile(`(?m)^["']?(nodes|edges|state_schema|initial_state|error_policy)["']?[ \t]*:`)

// pathOf returns the path of a document. One that is not a file, such as a new text, is
// in the working directory.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return absolute(uri)
	}
	path := u.Path
	if u.Scheme != "file" {
		return absolute(filepath.Base(u.Opaque + path))
	}
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	return absolute(filepath.FromSlash(path))
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// uriOf returns the URI of a file.
func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// line returns the offsets of a line, from 0, without its end.
func (d *document) line(n int) (start, end int) {
	if n < 0 {
		return 0, 0
	}
	if n >= len(d.lines) {
		return len(d.text), len(d.text)
	}
	start, end = d.lines[n], len(d.text)
	if n+1 < len(d.lines) {
		end = d.lines[n+1]
	}
	return start, start + len(strings.TrimRight(d.text[start:end], "\r\n"))
}

// offset returns the offset of a position, which counts UTF-16 code units. A position
// outside the text is moved to the nearest one.
func (d *document) offset(p position) int {
	start, end := d.line(p.Line)
	units := 0
	for i, r := range d.text[start:end] {
		if units += max(utf16.RuneLen(r), 1); units > p.Character {
			return start + i
		}
	}
	return end
}

// position returns the position of an offset.
func (d *document) position(offset int) position {
	line := d.lineOf(offset)
	p := position{Line: line}
	for _, r := range d.text[d.lines[line]:offset] {
		p.Character += max(utf16.RuneLen(r), 1)
	}
	return p
}

// lineOf returns the line of an offset, from 0.
func (d *document) lineOf(offset int) int {
	low, high := 0, len(d.lines)
	for low+1 < high {
		if mid := (low + high) / 2; d.lines[mid] <= offset {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

func (d *document) span(start, end int) span { return span{d.position(start), d.position(end)} }

// at returns the offset of a line and a column of a diagnostic: both from 1, in
// characters, 0 if unknown.
func (d *document) at(line, column int) int {
	start, end := d.line(max(line, 1) - 1)
	for ; column > 1 && start < end; column-- {
		_, size := utf8.DecodeRuneInString(d.text[start:])
		start += size
	}
	return start
}

// edit returns the document after a change.
func (d *document) edit(version int, changes []change) *document {
	for _, c := range changes {
		text := c.Text
		if c.Range != nil {
			start, end := d.offset(c.Range.Start), d.offset(c.Range.End)
			text = d.text[:start] + text + d.text[max(start, end):]
		}
		d = newDocument(d.uri, version, text)
	}
	return d
}
