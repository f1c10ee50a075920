package source

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// The parser reports a problem as text alone, with the line where the
// surrounding value began, if any. complaint takes that text apart.
var complaint = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`) })

// reportSyntax adds the diagnostic for an error of the parser.
func reportSyntax(file string, data []byte, err error, diags *diag.List) {
	parts := complaint().FindStringSubmatch(err.Error())
	line, problem := 1, err.Error()
	if parts != nil {
		problem = parts[2]
		if n, err := strconv.Atoi(parts[1]); err == nil {
			line = n
		}
	}
	pos := diag.Pos{File: file, Line: line, Column: 1}
	if strings.HasPrefix(problem, "exceeded max depth") {
		diags.Errorf(diagcode.NestingTooDeep, pos, "", "values are nested more than %d levels deep", MaxDepth)
		return
	}
	if found, column := locate(data, problem); found > 0 {
		pos.Line, pos.Column = found, column
	}
	row := newLines(data).line(pos.Line)
	if name, ok := strings.CutPrefix(problem, "unknown anchor '"); ok {
		name = strings.TrimSuffix(name, "' referenced")
		pos.Column = max(pos.Column-utf8.RuneCountInString(name), 1)
		diags.Errorf(diagcode.AliasProblem, pos, "define it first with &"+name+"; put text that begins with * in quotes", "unknown anchor %q", name)
		return
	}
	message, hint := explain(problem, row)
	diags.Errorf(diagcode.Syntax, pos, hint, "%s", message)
}

// explain words a problem of the parser for somebody who does not know its
// grammar. row is the line it was found on.
func explain(problem string, row []byte) (message, hint string) {
	indentation := row[:len(row)-len(bytes.TrimLeft(row, " \t"))]
	switch {
	case bytes.ContainsRune(indentation, '\t') && !strings.Contains(problem, "escape") && !strings.Contains(problem, "hexdecimal"):
		return "a tab indents this line", "indent with spaces"
	case bytes.Contains(row, []byte(": {{")) || bytes.Contains(row, []byte("- {{")):
		return "a template is not in quotes", "write key: \"{{ ... }}\""
	}
	for _, e := range explanations {
		if !strings.HasPrefix(problem, e.problem) {
			continue
		}
		if strings.HasPrefix(e.hint, "add the missing ,") && bytes.ContainsRune(row, '?') {
			return e.message, e.hint + "; text that holds a ? needs quotes here"
		}
		return e.message, e.hint
	}
	return problem, ""
}

// explanations put the parser's problems, told by how they begin, in plain words.
var explanations = []struct{ problem, message, hint string }{
	{"mapping values are not allowed", "a \": \" where no key can stand", "check the indentation; put text that holds \": \" in quotes"},
	{"did not find expected key", "neither a key nor the end of the mapping", "check the indentation, and close quotes and brackets"},
	{"did not find expected '-' indicator", "neither a \"- \" item nor the end of the list", "indent the keys of an item alike"},
	{"did not find expected ',' or ']'", "a list in [ ] is not closed or lacks a comma", "add the missing , or ]"},
	{"did not find expected ',' or '}'", "a mapping in { } is not closed or lacks a comma", "add the missing , or }"},
	{"did not find expected node content", "a value is missing or cannot begin like this", "close brackets, and put special characters in quotes"},
	{"could not find expected ':'", "this line is neither \"key: value\" nor a \"- \" item", "add the missing \": \", or a space behind the \"-\""},
	{"found unexpected end of stream", "a quote that opens here is not closed", "add the closing quote"},
	{"found unexpected document indicator", "a quote is not closed before the document ends", "add the closing quote"},
	{"found character that cannot start any token", "a value cannot begin with this character", "put the value in quotes"},
	{"found unknown escape character", "unknown escape in double quotes", "double the backslash, or use single quotes"},
	{"did not find expected hexdecimal number", "an escape lacks hexadecimal digits", "double the backslash, or use single quotes"},
	{"found invalid Unicode character escape code", "an escape names no character", "write the character itself, or \\U and eight digits"},
	{"block sequence entries are not allowed", "a \"- \" item where no list can begin", "put the list on the next line"},
	{"did not find expected alphabetic or numeric character", "an anchor or alias has no name", "put text that begins with * or & in quotes"},
	{"did not find expected comment or line break", "text behind the | or > of a block", "begin the block on the next line"},
	{"found an indentation indicator equal to 0", "the indentation of a block cannot be 0", "remove the digit behind | or >"},
	{"found a tab character where an indentation space", "a tab indents this line", "indent with spaces"},
	{"did not find expected <document start>", "a second value behind the document's end", "check the indentation of this line"},
}

// maxLocate bounds the search for a problem's place: it parses the file
// again and again.
const maxLocate = 128 << 10

// locate finds the line and column at which the parser first meets a
// problem: the end of the shortest beginning of the file that has it. The
// parser itself does not say. 0 where the file is too large for the search.
func locate(data []byte, problem string) (line, column int) {
	if len(data) > maxLocate {
		return 0, 0
	}
	fails := func(prefix []byte) bool {
		decoder := yaml.NewDecoder(bytes.NewReader(prefix))
		err := decoder.Decode(new(yaml.Node))
		if err == nil {
			err = decoder.Decode(new(yaml.Node))
		}
		return err != nil && strings.HasSuffix(err.Error(), problem)
	}
	l := newLines(data)
	l.split()
	first := search(len(l.starts), func(n int) bool { return fails(data[:l.end(n)]) })
	if !fails(data[:l.end(first)]) {
		return 0, 0
	}
	row := l.line(first)
	if strings.HasPrefix(problem, "did not find expected ',' or") {
		if column := flowFault(row); column > 0 {
			return first, column
		}
	}
	start := l.starts[first-1]
	width := search(len(row), func(n int) bool { return fails(data[:start+n]) })
	return first, max(utf8.RuneCount(row[:width]), 1)
}

// search gives the smallest n from 1 to limit for which holds is true, taking
// it to stay true from there on; limit where it never is.
func search(limit int, holds func(n int) bool) int {
	low, high := 1, limit
	for low < high {
		middle := (low + high) / 2
		if holds(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// end is the offset behind line n.
func (l *lines) end(n int) int {
	if n >= len(l.starts) {
		return len(l.data)
	}
	return l.starts[n]
}
