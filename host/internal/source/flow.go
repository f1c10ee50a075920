package source

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFlowRow is the longest line that flowFault examines: it parses every
// prefix.
const maxFlowRow = 1000

// flowFault finds the column of a mistake in a line's lists in [ ] and mappings
// in { }: after the longest prefix that is valid once its open brackets are
// closed. It returns 0 if that is the whole line or nothing.
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
