package lsp

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// codePages is where the pages of the error codes are.
const codePages = "https://github.com/the-edge-agent/tea/blob/main/docs/errors/"

// checkAll checks the open workflows and publishes what is new. Every one is checked,
// because a workflow can contain any other open file.
func (s *server) checkAll() {
	files := s.snapshot()
	var open []*document
	s.mu.Lock()
	for uri := range s.workflows {
		if d := files.documents[pathOf(uri)]; d != nil {
			open = append(open, d)
		}
	}
	s.mu.Unlock()
	found := map[string]map[string][]diagnostic{}
	for _, d := range open {
		found[d.uri] = s.check(d, files)
	}
	before := merge(s.published)
	s.published = found
	after := merge(found)
	uris := maps.Clone(before)
	maps.Copy(uris, after)
	for _, d := range open {
		uris[d.uri] = nil
	}
	for _, uri := range slices.Sorted(maps.Keys(uris)) {
		p := publishParams{URI: uri, Diagnostics: after[uri]}
		if p.Diagnostics == nil {
			p.Diagnostics = []diagnostic{}
		}
		if d, ok := files.documents[pathOf(uri)]; ok && files.text[d.path] != nil && d.uri == uri {
			p.Version = &d.version
		} else if reflect.DeepEqual(before[uri], after[uri]) {
			continue
		}
		if err := s.notify("textDocument/publishDiagnostics", p); err != nil {
			return // the client is gone, which the reader notices
		}
	}
}

// merge joins the findings of all workflows, each once.
func merge(found map[string]map[string][]diagnostic) map[string][]diagnostic {
	all := map[string][]diagnostic{}
	for _, workflow := range slices.Sorted(maps.Keys(found)) {
		for uri, list := range found[workflow] {
			for _, d := range list {
				if !slices.ContainsFunc(all[uri], func(other diagnostic) bool { return reflect.DeepEqual(d, other) }) {
					all[uri] = append(all[uri], d)
				}
			}
		}
	}
	return all
}

// snapshot are the open documents, by path, which a check reads instead of the disk.
type snapshot struct {
	documents map[string]*document
	text      map[string][]byte
}

// document returns the document of a file, open or not.
func (f snapshot) document(path string) *document {
	d := f.documents[path]
	if d == nil {
		const limit = 4 << 20
		text, err := confine.ReadRegular(path, limit)
		if err != nil {
			text = nil
		}
		d = newDocument(uriOf(path), 0, string(text))
		f.documents[path] = d
	}
	return d
}

// check returns the findings about an open workflow, by URI.
func (s *server) check(d *document, files snapshot) (found map[string][]diagnostic) {
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintf(os.Stderr, "check %s: %v\n%s", d.path, fault, debug.Stack())
		}
	}()
	found = map[string][]diagnostic{}
	for _, finding := range s.validate(d, files) {
		about := d
		if finding.File != "" {
			about = files.document(absolute(finding.File))
		}
		found[about.uri] = append(found[about.uri], toDiagnostic(about, finding))
	}
	return found
}

// validate returns what `tea validate` says about the text of a document.
func (s *server) validate(d *document, files snapshot) host.Diagnostics {
	wf, err := s.host.LoadSource(&host.Source{File: d.path, Files: files.text}, host.LoadOptions{Strict: s.strict})
	if wf != nil {
		defer wf.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[d.uri] != nil {
			s.ofWorkflow[d.uri] = wf.Actions()
		}
		return wf.Warnings()
	}
	if diags, ok := errors.AsType[host.Diagnostics](err); ok {
		return diags
	}
	return host.Diagnostics{{Severity: diag.Error, Message: err.Error()}}
}

func toDiagnostic(d *document, finding diag.Diagnostic) diagnostic {
	start := d.at(finding.Line, finding.Column)
	out := diagnostic{Range: d.span(start, d.endOf(start)), Severity: 1, Code: finding.Code, Source: "tea", Message: finding.Message}
	if finding.Severity == diag.Warning {
		out.Severity = 2
	}
	if finding.Hint != "" {
		out.Message += "\nhint: " + finding.Hint
	}
	if finding.Code != "" {
		out.CodeDescription = map[string]string{"href": codePages + finding.Code + ".md"}
	}
	return out
}

// endOf returns the end of what begins at an offset: a text in quotes, a word, or the
// rest of the line.
func (d *document) endOf(start int) int {
	_, end := d.line(d.lineOf(start))
	rest := d.text[start:end]
	if start > 0 && start < end {
		for _, quote := range []string{`"`, "'"} {
			if d.text[start-1:start] == quote {
				if n := strings.Index(rest, quote); n > 0 {
					return start + n
				}
			}
			if after, ok := strings.CutPrefix(rest, quote); ok {
				if n := strings.Index(after, quote); n >= 0 {
					return start + n + 2
				}
			}
		}
	}
	if n := strings.IndexFunc(rest, func(r rune) bool { return !isWordRune(r) }); n > 0 {
		return start + n
	} else if n < 0 {
		return end
	}
	if rest = strings.TrimRight(rest, " \t"); rest != "" {
		return start + len(rest)
	}
	_, size := utf8.DecodeRuneInString(d.text[start:end])
	return start + size
}

// isWordRune reports whether a character is part of a name: of a key, a node or an action.
func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' || r == '.' || r == '/'
}
