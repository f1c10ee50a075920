package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// MaxBytes is the maximum size of a file.
const MaxBytes = 4 << 20

// Parse reads one document. file is the file name in positions. Parse adds
// mistakes to diags; it returns nil if the document is unusable, and otherwise
// what it could read.
func Parse(file string, data []byte, diags *diag.List) *Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // editors on Windows write this mark
	if !checkText(file, data, diags) {
		return nil
	}
	data = withoutJSONEscapes(data)
	readable, restore := replaceForParser(data)
	decoder := yaml.NewDecoder(bytes.NewReader(readable))
	var doc yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			diags.Errorf(diagcode.FileEmpty, diag.Pos{File: file}, "write keys such as nodes: in it", "the file is empty")
		} else {
			reportSyntax(file, readable, err, diags)
		}
		return nil
	}
	if restore != nil {
		restore(&doc)
	}
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		diags.Errorf(diagcode.SeveralDocuments, diag.Pos{File: file, Line: next.Line, Column: next.Column},
			"keep one document and remove the --- line", "a second YAML document begins here")
		return nil
	} else if !errors.Is(err, io.EOF) {
		reportSyntax(file, readable, err, diags)
		return nil
	}
	b := builder{file: file, lines: newLines(data), diags: diags, built: map[*yaml.Node]*shared{}}
	root := b.build(doc.Content[0], 0)
	if root != nil && root.Kind == Null && root.Text == "" {
		diags.Errorf(diagcode.FileEmpty, diag.Pos{File: file}, "write keys such as nodes: in it", "the file is empty")
		return nil
	}
	return root
}

// checkText rejects anything but plain UTF-8 text before the YAML parser reads
// it.
func checkText(file string, data []byte, diags *diag.List) bool {
	if len(data) > MaxBytes {
		diags.Errorf(diagcode.FileTooLarge, diag.Pos{File: file}, "keep large data in separate files and read it with file.read",
			"the file has more than the %d bytes allowed", MaxBytes)
		return false
	}
	for _, mark := range byteOrderMarks {
		if bytes.HasPrefix(data, mark.bytes) {
			diags.Errorf(diagcode.NotText, diag.Pos{File: file, Line: 1, Column: 1}, "save the file as UTF-8",
				"the file begins with a %s byte order mark", mark.name)
			return false
		}
	}
	line, column := 1, 1
	for at := 0; at < len(data); {
		r, size := rune(data[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(data[at:])
		}
		if problem := textProblem(r, size); problem != "" {
			diags.Errorf(diagcode.NotText, diag.Pos{File: file, Line: line, Column: column},
				"save the file as UTF-8; write special characters as escapes in double quotes, such as \"\\x07\"", "%s", problem)
			return false
		}
		at += size
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return true
}

var byteOrderMarks = []struct {
	name  string
	bytes []byte
}{
	{"UTF-32", []byte("\xff\xfe\x00\x00")},
	{"UTF-16", []byte("\xff\xfe")},
	{"UTF-16", []byte("\xfe\xff")},
}

func textProblem(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "the file is not UTF-8 here"
	case r == 0:
		return "the file contains a NUL character"
	case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f, r >= 0x80 && r < 0xa0 && r != 0x85, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return "the file contains a control character that YAML does not allow"
	}
	return ""
}

// jsonEscape matches an escape in JSON: a UTF-16 surrogate pair, a single
// surrogate, or any other escape.
var jsonEscape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\\(?:ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|ud[89a-f][0-9a-f]{2}|.)`)
})

// withoutJSONEscapes rewrites the escapes of JSON that the YAML parser does not
// support: UTF-16 surrogate pairs (\ud83d\ude00) and single surrogates. The
// number of lines does not change.
func withoutJSONEscapes(data []byte) []byte {
	if !json.Valid(data) {
		return data
	}
	return jsonEscape().ReplaceAllFunc(data, func(escape []byte) []byte {
		half := func(digits []byte) rune {
			n, _ := strconv.ParseUint(string(digits), 16, 32)
			return rune(n)
		}
		switch {
		case len(escape) == len(`\ud83d\ude00`):
			return utf8.AppendRune(nil, utf16.DecodeRune(half(escape[2:6]), half(escape[8:])))
		case len(escape) == len(`\ud83d`):
			return utf8.AppendRune(nil, utf8.RuneError)
		}
		return escape
	})
}
