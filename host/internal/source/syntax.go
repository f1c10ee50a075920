package source

import (
	"bytes"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// parserError splits an error of the parser, which is plain text with the line at
// which the enclosing value began, if any.
var parserError = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`) })

// reportSyntax adds the diagnostic of a parser error.
func reportSyntax(file string, data []byte, err error, diags *diag.List) {
	parts := parserError().FindStringSubmatch(err.Error())
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

// explain rewords a problem that the parser reports in the terms of its grammar.
// row is the problem's line.
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
			return e.message, e.hint + "; text that contains a ? needs quotes here"
		}
		return e.message, e.hint
	}
	return problem, ""
}

// explanations reword the parser's problems, recognised by their prefix.
var explanations = []struct{ problem, message, hint string }{
	{"mapping values are not allowed", "a \": \" where no key is allowed", "check the indentation; put text that contains \": \" in quotes"},
	{"did not find expected key", "neither a key nor the end of the mapping", "check the indentation, and close quotes and brackets"},
	{"did not find expected '-' indicator", "neither a \"- \" item nor the end of the list", "indent the keys of an item alike"},
	{"did not find expected ',' or ']'", "a list in [ ] is not closed or lacks a comma", "add the missing , or ]"},
	{"did not find expected ',' or '}'", "a mapping in { } is not closed or lacks a comma", "add the missing , or }"},
	{"did not find expected node content", "a value is missing or cannot begin like this", "close brackets, and put special characters in quotes"},
	{"could not find expected ':'", "this line is neither \"key: value\" nor a \"- \" item", "add the missing \": \", or a space after the \"-\""},
	{"found unexpected end of stream", "a quote that opens here is not closed", "add the closing quote"},
	{"found unexpected document indicator", "a quote is not closed before the document ends", "add the closing quote"},
	{"found character that cannot start any token", "a value cannot begin with this character", "put the value in quotes"},
	{"found unknown escape character", "unknown escape in double quotes", "double the backslash, or use single quotes"},
	{"did not find expected hexdecimal number", "an escape lacks hexadecimal digits", "double the backslash, or use single quotes"},
	{"found invalid Unicode character escape code", "an escape does not name a character", "write the character itself, or \\U and eight digits"},
	{"block sequence entries are not allowed", "a \"- \" item where no list can begin", "put the list on the next line"},
	{"did not find expected alphabetic or numeric character", "an anchor or alias has no name", "put text that begins with * or & in quotes"},
	{"did not find expected comment or line break", "text after the | or > of a block", "begin the block on the next line"},
	{"found an indentation indicator equal to 0", "the indentation of a block cannot be 0", "remove the digit after | or >"},
	{"found a tab character where an indentation space", "a tab indents this line", "indent with spaces"},
	{"did not find expected <document start>", "a second value after the end of the document", "check the indentation of this line"},
}

// maxLocate bounds the search for the position of a problem, which parses the
// file repeatedly.
const maxLocate = 128 << 10

// locate finds the position of a problem, which the parser does not report: the
// end of the shortest prefix of the file with the problem. It returns 0, 0 if the
// file is too large for the search.
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
	first := 1 + sort.Search(len(l.starts)-1, func(n int) bool { return fails(data[:l.end(n+1)]) })
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
	width := 1 + sort.Search(len(row)-1, func(n int) bool { return fails(data[:start+n+1]) })
	return first, max(utf8.RuneCount(row[:width]), 1)
}

// end returns the offset after line n.
func (l *lines) end(n int) int {
	if n >= len(l.starts) {
		return len(l.data)
	}
	return l.starts[n]
}

// maxFlowRow is the longest line that flowFault examines, because it parses every
// prefix.
const maxFlowRow = 1000

// flowFault finds the column of a mistake in a line's lists in [ ] and mappings in
// { }: after the longest prefix that is valid once its open brackets are closed. It
// returns 0 if that prefix is empty or the whole line.
func flowFault(row []byte) int {
	row = bytes.TrimRight(row, " \r\n")
	begin := bytes.IndexAny(row, "{[")
	if begin < 0 || len(row) > maxFlowRow {
		return 0
	}
	var closers []byte // the innermost last
	var quote byte
	good := 0
	for at := begin; at < len(row); at++ {
		switch c := row[at]; {
		case quote != 0:
			if c == '\\' && quote == '"' {
				at++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			closers = append(closers, '}')
		case c == '[':
			closers = append(closers, ']')
		case len(closers) > 0 && c == closers[len(closers)-1]:
			closers = closers[:len(closers)-1]
		}
		if quote == 0 && closes(row[begin:min(at+1, len(row))], closers) {
			good = at + 1
		}
	}
	rest := bytes.TrimLeft(row[good:], " ")
	if good == 0 || len(rest) == 0 || rest[0] == '#' {
		return 0
	}
	return utf8.RuneCount(row[:len(row)-len(rest)]) + 1
}

// closes reports whether a text is valid YAML when closers follow it.
func closes(text, closers []byte) bool {
	doc := string(text)
	for i := len(closers) - 1; i >= 0; i-- {
		doc += string(closers[i])
	}
	return yaml.NewDecoder(strings.NewReader(doc)).Decode(new(yaml.Node)) == nil
}
