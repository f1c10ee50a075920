// Package diag has diagnostics: what is wrong with a file or a value, where, and what to
// do about it. A [List] collects them; it is an error if at least one of them has severity
// [Error].
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Severity is the weight of a diagnostic.
type Severity string

const (
	// Error means that the workflow is not valid.
	Error Severity = "error"
	// Warning does not stop a workflow; validate --strict treats it as an
	// error.
	Warning Severity = "warning"
)

// Pos is a position in a document: file, line and column (both from 1; 0 if
// unknown) and the path inside of the document, such as nodes[3].retry.
type Pos struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
}

// String returns file:line:column, as far as they are known.
func (p Pos) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, ":%d", p.Column)
		}
	}
	return b.String()
}

// Diagnostic is one finding. Code is stable ("TEA1203") and has a page in
// docs/errors; Hint is the remedy, and can be empty.
type Diagnostic struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Pos
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error returns the diagnostic on one line, the hint on a second.
func (d Diagnostic) Error() string {
	var b strings.Builder
	if pos := d.Pos.String(); pos != "" {
		b.WriteString(pos + ": ")
	}
	fmt.Fprintf(&b, "%s %s: %s", d.Severity, d.Code, d.Message)
	if d.Path != "" {
		fmt.Fprintf(&b, " (%s)", d.Path)
	}
	if d.Hint != "" {
		fmt.Fprintf(&b, "\n  hint: %s", d.Hint)
	}
	return b.String()
}

// List is a set of diagnostics. The zero value is ready to use. It is not safe for
// concurrent use.
type List []Diagnostic

// Errorf adds an error.
//
//go:noinline
func (l *List) Errorf(code string, pos Pos, hint, format string, args ...any) {
	*l = append(*l, Diagnostic{Code: code, Severity: Error, Pos: pos, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Warnf adds a warning.
//
//go:noinline
func (l *List) Warnf(code string, pos Pos, hint, format string, args ...any) {
	*l = append(*l, Diagnostic{Code: code, Severity: Warning, Pos: pos, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// HasErrors reports whether at least one diagnostic is an error.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Sort orders by file, line, column, code. It is stable.
func (l List) Sort() {
	sort.SliceStable(l, func(i, j int) bool {
		a, b := l[i], l[j]
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code)) < 0
	})
}

// Err returns the list if it has an error, otherwise nil.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return l
}

// Error returns the diagnostics, one on each line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Key returns the path of a member of an object: nodes.fetch, headers["x y"]. A
// name that is not a plain word is quoted in brackets.
func Key(path, key string) string {
	if !plainWord(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index returns the path of an element of a list: nodes[3].
func Index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

func plainWord(s string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		default:
			return false
		}
	}
	return s != ""
}
